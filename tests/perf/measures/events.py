"""The scripted engine: all that is measured is what the server does with an engine's tokens.

Events a second that one embedded process sends; the delay from the engine's giving a token away to its arrival, with 64
streams at 50 tokens a second; and the processor time of a request.
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
from tests.perf.trace.startup_path import watched_by

CAPACITY_STREAMS, CAPACITY_TOKENS, SHORT_CAPACITY_TOKENS = 32, 1500, 600
LEAST_EVENTS = 10_000
DELAY_STREAMS, TOKEN_SECONDS, DELAY_TOKENS, SHORT_DELAY_TOKENS = 64, 0.02, 300, 150
MOST_DELAY_MS = {"embedded": 20.0, "team": 50.0}
REQUESTS, SHORT_REQUESTS, REQUEST_TOKENS, IDLE_SECONDS = 200, 50, 16, 2.0
MOST_CPU_MS = 5.0


def run(options: Options, report: Report) -> None:
    """All three."""
    with embedded_server(options.work / "events", options.settings) as server:
        note_capacity([capacity(server, options) for _ in range(options.rounds)], report)
        note_cpu(server, SHORT_REQUESTS if options.is_short else REQUESTS, report)
    for shape in ("embedded", "team"):
        delays: list[float] = []
        for number in range(options.rounds):
            delays += delay(shape, number, options)
        if delays:
            note_delay(shape, delays, report)
        else:
            print("event delay, team: not measured, it needs PostgreSQL and Redis")


def ask(tokens: int, *, stream: bool = True) -> dict[str, object]:
    """A request that is answered with so many tokens."""
    return {"input": f"[[tokens: {tokens}]]", "stream": stream, "max_output_tokens": tokens + 1}


# How much


def capacity(server: LiveServer, options: Options) -> dict[str, float]:
    """Tokens and deltas a second of streams whose engine waits for nothing."""
    tokens = SHORT_CAPACITY_TOKENS if options.is_short else CAPACITY_TOKENS
    streams = run_streams(target_of(server), [ask(tokens)] * CAPACITY_STREAMS)
    seconds = max(stream.end for stream in streams) - min(stream.sent for stream in streams)
    return {
        "tokens_per_second": sum(stream.output_tokens for stream in streams) / seconds,
        "deltas_per_second": sum(len(stream.times) for stream in streams) / seconds,
    }


def note_capacity(rounds: Sequence[Mapping[str, float]], report: Report) -> None:
    """Keep the medians. An event is what an engine makes in a step of a stream; several may leave as one delta."""
    report.note_details("events/capacity", list(rounds))
    title = f"scripted engine, embedded, {CAPACITY_STREAMS} streams"
    for key, name, least in (
        ("tokens", "events of the engine", LEAST_EVENTS),
        ("deltas", "deltas on the wire", None),
    ):
        value = statistics.median(seen[f"{key}_per_second"] for seen in rounds)
        figure = Figure(title=f"{title}, {name}", value=value, unit="a second", at_least=least)
        report.note(f"events/capacity/{key}", figure)


# How soon


def delay(shape: str, number: int, options: Options) -> list[float]:
    """Seconds of every token from the engine to the client; none where the shape can't be run."""
    directory = options.work / f"emissions-{shape}-{number}"
    with paced_server(shape, directory, options) as server:
        if server is None:
            return []
        tokens = SHORT_DELAY_TOKENS if options.is_short else DELAY_TOKENS
        streams = run_streams(target_of(server), [ask(tokens)] * DELAY_STREAMS)
    emissions = read_emissions(directory)
    return [late for stream in streams for late in delays_of(stream, emissions[stream.id])]


@contextmanager
def paced_server(shape: str, directory: Path, options: Options) -> Iterator[LiveServer | None]:
    """A server whose engine makes tokens at a steady pace and notes when."""
    settings = {
        "RESPONSES_SCRIPTED_TOKEN_SECONDS": str(TOKEN_SECONDS),
        "RESPONSES_BATCH_SIZE": str(DELAY_STREAMS),
        **options.settings,
        **watched_by("BENCH_EMISSIONS_DIR", directory),
    }
    start = embedded_server if shape == "embedded" else small_team
    with start(directory / "data", settings) as server:
        yield server


def delays_of(stream: Stream, emitted: Sequence[float]) -> list[float]:
    """The delay of each token: the script's tokens are numbers with a space before all but the first."""
    found: list[float] = []
    for arrived, piece in zip(stream.times, stream.pieces, strict=True):
        count = piece.count(b" ") + (not found)
        found += [arrived - made for made in emitted[len(found) : len(found) + count]]
    if len(found) != len(emitted):
        raise ValueError(f"{len(found)} tokens have arrived of {len(emitted)}")
    return found


def note_delay(shape: str, delays: Sequence[float], report: Report) -> None:
    """Keep the percentiles over all tokens of all rounds."""
    title = f"event delay, {shape}, {DELAY_STREAMS} streams at {1 / TOKEN_SECONDS:g} tokens a second"
    for percent in (50, 95):
        value = percentile(delays, percent) * 1000
        most = MOST_DELAY_MS[shape] if percent == 95 else None
        figure = Figure(title=f"{title}, p{percent}", value=value, unit="ms", at_most=most)
        report.note(f"events/delay/{shape}/p{percent}", figure)


# At what cost


def note_cpu(server: LiveServer, requests: int, report: Report) -> None:
    """Processor time of requests one after the other, less what the server uses when it is idle."""
    assert server.process is not None
    pid, target = server.process.pid, target_of(server)
    before = usage_of(pid).cpu_seconds
    time.sleep(IDLE_SECONDS)
    idle = (usage_of(pid).cpu_seconds - before) / IDLE_SECONDS
    with server.http() as http:

        def whole() -> None:
            answer = http.post("responses", json=ask(REQUEST_TOKENS, stream=False))
            if answer.status_code != 200:
                raise httpx.HTTPStatusError(answer.text, request=answer.request, response=answer)

        def streamed() -> None:
            run_streams(target, [ask(REQUEST_TOKENS)])

        for name, send in (("JSON", whole), ("stream", streamed)):
            send()
            before, began = usage_of(pid).cpu_seconds, time.perf_counter()
            for _ in range(requests):
                send()
            spent = usage_of(pid).cpu_seconds - before - idle * (time.perf_counter() - began)
            title = f"scripted engine, embedded, processor time of a request of {REQUEST_TOKENS} tokens, {name}"
            figure = Figure(title=title, value=spent / requests * 1000, unit="ms", at_most=MOST_CPU_MS)
            report.note(f"events/cpu/{name.lower()}", figure)
    report.note("events/cpu/idle", Figure(title="embedded server that is idle", value=idle * 100, unit="% of a core"))
