"""The time to the first event of a new stream while many requests are open.

200 JSON requests wait and 64 streams are open, with the scripted engine and 8 slots at 20 ms a token; then 100 streams
are created one after the other, each closed on its first event. The time starts before the connection is opened, and
ends with the first `event:` line, on a plain socket. Another process reads the open requests, so that only the server
is measured. All 264 must succeed.
"""

import asyncio
import json
import multiprocessing
import socket
import statistics
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

import httpx

from tests.live.server import embedded, running, team

from .load.servers import REDIS_URL, database, redis_listens
from .options import Options
from .report import Figure, Report

JSON_REQUESTS, STREAMS, SAMPLES = 200, 64, 100
TOKENS = 30
SETTINGS = {
    "RESPONSES_SCRIPTED_TOKEN_SECONDS": "0.02",
    "RESPONSES_BATCH_SIZE": "8",
    "RESPONSES_MAX_QUEUE": "1024",
}
FIRST_EVENT = b"event: response.created"
TIMEOUT_SECONDS = 60
LIMITS_MS = {"embedded": 10.0, "team": 25.0}


@dataclass(frozen=True, slots=True)
class LatencyResult:
    """Milliseconds to the first event, and the number of open requests that succeeded."""

    idle_ms: float
    median_ms: float
    p95_ms: float
    succeeded: int


def request_bytes(url: str, payload: dict[str, object], key: str = "") -> tuple[str, int, bytes]:
    """Host, port and bytes of a create request."""
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    body = json.dumps(payload).encode()
    head = (
        f"POST {parts.path}/responses HTTP/1.1\r\nHost: {parts.hostname}:{parts.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        f"X-API-Key: {key}\r\n\r\n"
    )
    return parts.hostname, parts.port, head.encode() + body


def first_event(url: str, key: str) -> float:
    """Seconds until a new stream's first event; the stream is then closed."""
    host, port, request = request_bytes(url, {"input": "[[tokens: 3]]", "stream": True}, key)
    started = time.perf_counter()
    with socket.create_connection((host, port), TIMEOUT_SECONDS) as connection:
        connection.sendall(request)
        received = b""
        while FIRST_EVENT not in received:
            part = connection.recv(65536)
            if not part:
                raise AssertionError(f"the stream ended before its first event: {received!r}")
            received += part
        return time.perf_counter() - started


async def read_answer(url: str, *, key: str, stream: bool, opened: asyncio.Event) -> bool:
    """Send a request and read its answer to the end. Returns whether it was completed."""
    host, port, request = request_bytes(url, {"input": f"[[tokens: {TOKENS}]]", "stream": stream}, key)
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    try:
        writer.write(request)
        if stream:
            await reader.readuntil(FIRST_EVENT)
        opened.set()
        rest = await asyncio.wait_for(reader.read(), 300)
    finally:
        writer.close()
    end = b"event: response.completed" if stream else b'"status":"completed"'
    return end in rest


async def wait_until_admitted(url: str, key: str, jobs: int) -> None:
    """Wait until the server has admitted ``jobs`` requests, not only received them."""
    async with httpx.AsyncClient(headers={"x-api-key": key}) as http:
        while True:
            status = (await http.get(f"{url}/status")).json()
            # The first ones may have ended and be stored.
            if status["running"] + status["waiting"] + status["store"]["entries"] >= jobs:
                return
            await asyncio.sleep(0.05)


async def keep_open(urls: list[str], key: str, parent: Connection) -> None:
    """Open all requests and notify the parent; read them to the end and send the number that succeeded."""
    opened = [asyncio.Event() for _ in range(JSON_REQUESTS + STREAMS)]
    waiting = [
        asyncio.create_task(
            read_answer(urls[number % len(urls)], key=key, stream=number >= JSON_REQUESTS, opened=event)
        )
        for number, event in enumerate(opened)
    ]
    await asyncio.wait_for(asyncio.gather(*(event.wait() for event in opened)), TIMEOUT_SECONDS)
    await asyncio.wait_for(wait_until_admitted(urls[0], key, len(opened)), TIMEOUT_SECONDS)
    parent.send(None)
    parent.send(sum(await asyncio.gather(*waiting)))


def run_load(urls: list[str], key: str, parent: Connection) -> None:
    """The main function of the process that keeps requests open."""
    asyncio.run(keep_open(urls, key, parent))


def measure(urls: list[str], key: str) -> LatencyResult:
    """Measure the idle server, open all requests, then measure again."""
    for _ in range(5):
        first_event(urls[0], key)
    idle = first_event_times(urls, key, 20)
    processes = multiprocessing.get_context("spawn")
    own_end, other_end = processes.Pipe()
    load = processes.Process(target=run_load, args=(urls, key, other_end), daemon=True)
    load.start()
    other_end.close()
    own_end.recv()
    times = first_event_times(urls, key, SAMPLES)
    if own_end.poll():
        raise AssertionError("the open requests ended before the measurement")
    succeeded = own_end.recv()
    load.join()
    return LatencyResult(
        idle_ms=statistics.median(idle) * 1000,
        median_ms=statistics.median(times) * 1000,
        p95_ms=statistics.quantiles(times, n=20)[-1] * 1000,
        succeeded=succeeded,
    )


def first_event_times(urls: list[str], key: str, count: int) -> list[float]:
    """Seconds to the first event of ``count`` streams, one after the other."""
    times = []
    for number in range(count):
        times.append(first_event(urls[number % len(urls)], key))
        # The closed stream is removed meanwhile.
        time.sleep(0.02)
    return times


def run(options: Options, report: Report) -> None:
    """Measure both shapes."""
    (options.directory / "latency").mkdir()
    (options.directory / "latency-team").mkdir()
    with running(embedded(options.directory / "latency", **SETTINGS)) as server:
        add_figures("embedded", measure(server.urls, server.key), report)
    with database() as url:
        if url is None or not redis_listens():
            print("first event, team: not measured, it needs PostgreSQL and Redis")
            return
        data_dir = options.directory / "latency-team"
        with running(team(data_dir, database_url=url, redis_url=REDIS_URL, web=2, workers=2, **SETTINGS)) as server:
            add_figures("team", measure(server.urls, server.key), report)


def add_figures(shape: str, result: LatencyResult, report: Report) -> None:
    """Store the figures. Raises AssertionError if a request has not succeeded."""
    total = JSON_REQUESTS + STREAMS
    assert result.succeeded == total, f"{result.succeeded} of {total} requests have succeeded"
    title = f"first event, {shape}"
    for name, figure in {
        "idle": Figure(title=f"{title}, idle", value=result.idle_ms, unit="ms"),
        "p50": Figure(
            title=f"{title}, with {total} open, p50", value=result.median_ms, unit="ms", at_most=LIMITS_MS[shape]
        ),
        "p95": Figure(title=f"{title}, with {total} open, p95", value=result.p95_ms, unit="ms"),
    }.items():
        report.add(f"latency/{shape}/{name}", figure)
