"""Figures in Prometheus' text format, version 0.0.4.

By hand, since the client library counts in one process: ours add up in the database, and what is left is to write them.
"""

from collections.abc import Iterator

from responses_api.counting import FAMILIES, Family, series
from responses_api.selectors.server_status import ServerStatus


def metrics_text(status: ServerStatus, *, version: str) -> str:
    """All families. Gauges are of this moment, and the same whichever process is asked."""
    gauges = (
        ("mlx_responses_running", "Responses that are being generated.", status.running),
        ("mlx_responses_waiting", "Responses that wait for a slot or a worker.", status.waiting),
        ("mlx_responses_background_running", "Of those that run, background jobs.", status.background_running),
        ("mlx_responses_background_waiting", "Of those that wait, background jobs.", status.background_waiting),
        ("mlx_responses_events", "Events of background jobs that are kept.", status.events),
        ("mlx_responses_event_bytes", "Bytes of these events.", status.event_bytes),
        ("mlx_responses_readers", "Clients that wait for a response or stream one, by heartbeats.", status.readers),
        ("mlx_responses_slots", "Responses that can be generated at once.", sum(one.slots for one in status.workers)),
        ("mlx_responses_workers", "Live worker processes.", len(status.workers)),
        ("mlx_responses_web_processes", "Live web processes that have had a generation.", status.web_processes),
        ("mlx_responses_assembly_bytes", "Bytes of histories being read, by heartbeats.", status.assembly_bytes),
        ("mlx_responses_uptime_seconds", "Age of the oldest live process.", status.uptime_seconds),
        ("mlx_responses_store_entries", "Responses stored.", status.store_entries),
        ("mlx_responses_store_bytes", "Bytes of responses and items in the store.", status.store_bytes),
    )
    lines = [*head("mlx_responses_info", "The server's version.", "gauge")]
    lines.append(series("mlx_responses_info", version=version) + " 1")
    for name, help, value in gauges:
        lines += [*head(name, help, "gauge"), f"{name} {value}"]
    for family in FAMILIES:
        lines += head(family.name, family.help, family.kind)
        lines += histogram(family, status.counts) if family.buckets else counter(family, status.counts)
    return "\n".join(lines) + "\n"


def head(name: str, help: str, kind: str) -> list[str]:
    """What stands before a family's samples."""
    return [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]


def counter(family: Family, counts: dict[str, float]) -> Iterator[str]:
    """A counter's samples; one without labels is there from the start."""
    if not family.labels and family.name not in counts:
        yield f"{family.name} 0"
    for name in sorted(counts):
        if name == family.name or name.startswith(family.name + "{"):
            yield f"{name} {number(counts[name])}"


def histogram(family: Family, counts: dict[str, float]) -> Iterator[str]:
    """A histogram's samples: stored buckets stand alone, Prometheus' include the smaller ones."""
    total = 0.0
    for bound in (*(f"{bucket:g}" for bucket in family.buckets), "+Inf"):
        name = series(family.name + "_bucket", le=bound)
        total += counts.get(name, 0)
        yield f"{name} {number(total)}"
    yield f"{family.name}_sum {number(counts.get(family.name + '_sum', 0))}"
    yield f"{family.name}_count {number(total)}"


def number(value: float) -> str:
    """Whole numbers without a point."""
    return str(int(value)) if value == int(value) else repr(value)
