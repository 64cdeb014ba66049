"""The server's figures as Prometheus families.

The client library's counters count in one process; ours are summed in the database, where a collector of our own reads
them, and the library writes the text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from responses_api.counting import FAMILIES, Family, labels_of, series
from responses_api.selectors.server_status import ServerStatus


def metrics_text(status: ServerStatus, *, version: str) -> bytes:
    """All families in Prometheus' text format, version 0.0.4."""
    return generate_latest(StatusCollector(status, version))


@dataclass(frozen=True, slots=True)
class StatusCollector(Collector):
    """All families. Gauges are current, and the same whichever process answers."""

    status: ServerStatus
    version: str

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("mlx_responses", "The server's version.", {"version": self.version})
        yield from gauges(self.status)
        for family in FAMILIES:
            yield (histogram if family.buckets else counter)(family, self.status.counts)


def gauges(status: ServerStatus) -> Iterator[Metric]:
    """Gauges of running, waiting and stored responses."""
    for name, help, value in (
        ("running", "Responses that are being generated.", status.running),
        ("waiting", "Responses that wait for a slot or a worker.", status.waiting),
        ("background_running", "Background jobs among the running responses.", status.background_running),
        ("background_waiting", "Background jobs among the waiting responses.", status.background_waiting),
        ("events", "Stored events of background jobs.", status.events),
        ("event_bytes", "Bytes of these events.", status.event_bytes),
        ("readers", "Clients that wait for a response or stream one, by heartbeats.", status.readers),
        ("slots", "Responses that can be generated at once.", sum(worker.slots for worker in status.workers)),
        ("workers", "Live worker processes.", len(status.workers)),
        ("models_loaded", "Models in the memory of workers, by heartbeats.", loaded_models(status)),
        (
            "model_memory_bytes",
            "Bytes of weights, sequences and cached prompts, by heartbeats.",
            memory(status),
        ),
        (
            "step_seconds",
            "Age of the oldest running step of an engine, by heartbeats; 0 if none runs.",
            oldest_step(status),
        ),
        ("web_processes", "Live web processes that have had a reader.", status.web_processes),
        ("assembly_bytes", "Bytes of histories being read, by heartbeats.", status.assembly_bytes),
        ("prompt_cache_bytes", "Bytes of prompts cached in memory, by heartbeats.", status.prompt_cache_bytes),
        ("prompt_cache_disk_bytes", "Bytes of prompts cached on disk, by heartbeats.", status.prompt_cache_disk_bytes),
        ("uptime_seconds", "Age of the oldest live process.", status.uptime_seconds),
        ("store_entries", "Stored responses.", status.store_entries),
        ("store_bytes", "Bytes of responses and items in the store.", status.store_bytes),
    ):
        yield GaugeMetricFamily(f"mlx_responses_{name}", help, value)


def loaded_models(status: ServerStatus) -> int:
    """How many models at least one worker has loaded."""
    return sum(model.state in ("idle", "active") for model in status.models)


def memory(status: ServerStatus) -> int:
    """Bytes of memory that all models take."""
    return sum(model.memory_bytes for model in status.models)


def oldest_step(status: ServerStatus) -> float:
    """Seconds since the start of the oldest step that a worker's engine runs."""
    return max((worker.step_seconds for worker in status.workers), default=0.0)


def counter(family: Family, counts: Mapping[str, float]) -> Metric:
    """A counter. One without labels exists from the start, at 0."""
    if not family.labels:
        return CounterMetricFamily(family.name, family.help, counts.get(family.name, 0))
    metric = CounterMetricFamily(family.name, family.help, labels=family.labels)
    for name in sorted(counts):
        if name.startswith(family.name + "{"):
            labels = labels_of(name)
            metric.add_metric([labels[label] for label in family.labels], counts[name])
    return metric


def histogram(family: Family, counts: Mapping[str, float]) -> Metric:
    """A histogram. Stored buckets are disjoint, and those of Prometheus cumulative."""
    buckets = []
    total = 0.0
    for bound in family.bounds:
        total += counts.get(series(family.name + "_bucket", le=bound), 0)
        buckets.append((bound, total))
    return HistogramMetricFamily(family.name, family.help, buckets, counts.get(family.name + "_sum", 0))
