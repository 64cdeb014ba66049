"""The scripted engine, which takes no time itself: only the server is measured.

The events a second of one embedded process; the delay of a token from the engine to the client, with 64 streams at 50
tokens a second; and the processor time of a request.
"""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.live.server import LiveServer
from tests.perf.load.processes import usage_of
from tests.perf.load.rates import percentile
from tests.perf.load.servers import embedded_server, small_team, target_of
from tests.perf.load.streams import Stream, run_streams
from tests.perf.options import Options
from tests.perf.report import Figure, Report
from tests.perf.trace.emissions import read_emissions
from tests.perf.trace.startup_path import startup_environment

CAPACITY_STREAMS, CAPACITY_TOKENS, SHORT_CAPACITY_TOKENS = 32, 1500, 600
MIN_EVENTS = 10_000
DELAY_STREAMS, TOKEN_SECONDS, DELAY_TOKENS, SHORT_DELAY_TOKENS = 64, 0.02, 300, 150
MAX_DELAY_MS = {"embedded": 20.0, "team": 50.0}
REQUESTS, SHORT_REQUESTS, REQUEST_TOKENS, IDLE_SECONDS = 200, 50, 16, 2.0
MAX_CPU_MS = 5.0


def run(options: Options, report: Report) -> None:
    """Measure all three."""
    with embedded_server(options.directory / "events", options.settings) as server:
        add_capacity([capacity(server, options) for _ in range(options.rounds)], report)
        add_cpu(server, SHORT_REQUESTS if options.is_short else REQUESTS, report)
    for shape in ("embedded", "team"):
        delays: list[float] = []
        for number in range(options.rounds):
            delays += delay(shape, number, options)
        if delays:
            add_delay(shape, delays, report)
        else:
            print("event delay, team: not measured, it needs PostgreSQL and Redis")


def ask(tokens: int, *, stream: bool = True) -> dict[str, object]:
    """The body of a request for ``tokens`` tokens."""
    return {"input": f"[[tokens: {tokens}]]", "stream": stream, "max_output_tokens": tokens + 1}


# Capacity


def capacity(server: LiveServer, options: Options) -> dict[str, float]:
    """Tokens and deltas a second of streams whose engine doesn't wait."""
    tokens = SHORT_CAPACITY_TOKENS if options.is_short else CAPACITY_TOKENS
    streams = run_streams(target_of(server), [ask(tokens)] * CAPACITY_STREAMS)
    seconds = max(stream.end for stream in streams) - min(stream.sent for stream in streams)
    return {
        "tokens_per_second": sum(stream.output_tokens for stream in streams) / seconds,
        "deltas_per_second": sum(len(stream.times) for stream in streams) / seconds,
    }


def add_capacity(rounds: Sequence[Mapping[str, float]], report: Report) -> None:
    """Store the medians. An event is the token of a step and a stream; several may be sent as one delta."""
    report.add_details("events/capacity", list(rounds))
    title = f"scripted engine, embedded, {CAPACITY_STREAMS} streams"
    for key, name, at_least in (
        ("tokens", "events of the engine", MIN_EVENTS),
        ("deltas", "deltas on the wire", None),
    ):
        value = statistics.median(result[f"{key}_per_second"] for result in rounds)
        figure = Figure(title=f"{title}, {name}", value=value, unit="a second", at_least=at_least)
        report.add(f"events/capacity/{key}", figure)


# Delay


def delay(shape: str, number: int, options: Options) -> list[float]:
    """The delay of every token in seconds; empty if the shape can't run here."""
    directory = options.directory / f"emissions-{shape}-{number}"
    with paced_server(shape, directory, options) as server:
        if server is None:
            return []
        tokens = SHORT_DELAY_TOKENS if options.is_short else DELAY_TOKENS
        streams = run_streams(target_of(server), [ask(tokens)] * DELAY_STREAMS)
    emissions = read_emissions(directory)
    return [seconds for stream in streams for seconds in delays_of(stream, emissions[stream.id])]


@contextmanager
def paced_server(shape: str, directory: Path, options: Options) -> Iterator[LiveServer | None]:
    """A server whose engine generates tokens at a constant pace and records their times."""
    settings = {
        "RESPONSES_SCRIPTED_TOKEN_SECONDS": str(TOKEN_SECONDS),
        "RESPONSES_BATCH_SIZE": str(DELAY_STREAMS),
        **options.settings,
        **startup_environment("BENCH_EMISSIONS_DIR", directory),
    }
    start = embedded_server if shape == "embedded" else small_team
    with start(directory / "data", settings) as server:
        yield server


def delays_of(stream: Stream, emitted: Sequence[float]) -> list[float]:
    """The delay of each token: tokens are numbers, with a space before all except the first."""
    delays: list[float] = []
    for arrived, piece in zip(stream.times, stream.pieces, strict=True):
        count = piece.count(b" ") + (not delays)
        delays += [arrived - sent for sent in emitted[len(delays) : len(delays) + count]]
    if len(delays) != len(emitted):
        raise ValueError(f"{len(delays)} of {len(emitted)} tokens have arrived")
    return delays


def add_delay(shape: str, delays: Sequence[float], report: Report) -> None:
    """Store the percentiles of all tokens of all rounds."""
    title = f"event delay, {shape}, {DELAY_STREAMS} streams at {1 / TOKEN_SECONDS:g} tokens a second"
    for percent in (50, 95):
        value = percentile(delays, percent) * 1000
        at_most = MAX_DELAY_MS[shape] if percent == 95 else None
        figure = Figure(title=f"{title}, p{percent}", value=value, unit="ms", at_most=at_most)
        report.add(f"events/delay/{shape}/p{percent}", figure)


# Processor time


def add_cpu(server: LiveServer, requests: int, report: Report) -> None:
    """Store the processor time of sequential requests, without that of the idle server."""
    assert server.process is not None
    pid, target = server.process.pid, target_of(server)
    before = usage_of(pid).cpu_seconds
    time.sleep(IDLE_SECONDS)
    idle = (usage_of(pid).cpu_seconds - before) / IDLE_SECONDS
    with server.http() as http:

        def send_json() -> None:
            answer = http.post("responses", json=ask(REQUEST_TOKENS, stream=False))
            if answer.status_code != 200:
                raise httpx.HTTPStatusError(answer.text, request=answer.request, response=answer)

        def send_stream() -> None:
            run_streams(target, [ask(REQUEST_TOKENS)])

        for name, send in (("JSON", send_json), ("stream", send_stream)):
            send()
            before, started_at = usage_of(pid).cpu_seconds, time.perf_counter()
            for _ in range(requests):
                send()
            spent = usage_of(pid).cpu_seconds - before - idle * (time.perf_counter() - started_at)
            title = f"scripted engine, embedded, processor time of a request of {REQUEST_TOKENS} tokens, {name}"
            figure = Figure(title=title, value=spent / requests * 1000, unit="ms", at_most=MAX_CPU_MS)
            report.add(f"events/cpu/{name.lower()}", figure)
    report.add("events/cpu/idle", Figure(title="embedded server that is idle", value=idle * 100, unit="% of a core"))
