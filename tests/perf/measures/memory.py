"""10,000 requests and 500 cancellations of mixed length: whether memory grows, and how much it takes at most.

The tiny model, behind the embedded server. Its cached prompts are bounded so that they have filled their room after
some hundred requests; what grows after the thousandth grows for ever.
"""

import random
import statistics
import time
from typing import Any

from tests.live.server import LiveServer
from tests.perf.engines.tiny_model import words
from tests.perf.load.processes import usage_of
from tests.perf.load.servers import embedded_server, target_of
from tests.perf.load.streams import RequestFailed, StreamReader, Target
from tests.perf.options import Options
from tests.perf.report import Figure, Report

from .tiny import SETTINGS, tiny_models

BATCHES = 100
BATCH = 100
"""Requests that are sent at once; as many as run wait beside them."""
LEAVING = 5
"""How many more in each batch leave before their end, some of them in the middle of their answer."""
SETTLED = 10
"""Batches until memory must not grow."""
BUDGET_BYTES = 256 << 20
CACHE_BYTES = 16 << 20
MOST_GROWTH = 1.05
MIB = 1 << 20


def run(options: Options, report: Report) -> None:
    """One server, one run."""
    settings = {
        **SETTINGS,
        "RESPONSES_MEMORY_BYTES": str(BUDGET_BYTES),
        "RESPONSES_PROMPT_CACHE_MAX_BYTES": str(CACHE_BYTES),
        **options.settings,
    }
    with embedded_server(options.directory / "memory", settings, models=tiny_models(options)) as server:
        target = target_of(server)
        send(target, random.Random("warm"), [])
        before = resident(server)
        sizes: list[int] = []
        draw, previous, began = random.Random("memory"), list[str](), time.perf_counter()
        for number in range(1, (BATCHES // 10 if options.is_short else BATCHES) + 1):
            previous = send(target, draw, previous)
            sizes.append(resident(server))
            if number % SETTLED == 0:
                print(f"    {number * BATCH:,} requests: {sizes[-1] / MIB:.0f} MiB", flush=True)
        seconds = time.perf_counter() - began
    report.add_details(
        "memory", {"before": before, "bytes": sizes, "requests_per_second": BATCH * len(sizes) / seconds}
    )
    settled, last = sizes[SETTLED : 2 * SETTLED], sizes[-SETTLED:]
    report.add(
        "memory/growth",
        Figure(
            title=f"memory, the last {SETTLED * BATCH:,} of {BATCHES * BATCH:,} requests / those from the "
            f"{SETTLED * BATCH:,}th on",
            value=statistics.median(last) / statistics.median(settled or sizes),
            at_most=MOST_GROWTH,
        ),
    )
    report.add(
        "memory/peak",
        Figure(
            title="memory, most that requests added",
            value=(max(sizes) - before) / MIB,
            unit="MiB",
            at_most=BUDGET_BYTES / MIB,
        ),
    )


def send(target: Target, draw: random.Random, previous: list[str]) -> list[str]:
    """A batch of requests of mixed length, some that continue one of before; returns the ids of their responses."""
    reading, leaving = StreamReader(), StreamReader()
    for _ in range(LEAVING):
        leaving.send(target, body(target, draw, tokens=draw.choice((100, 1000))))
    leaving.read(count=LEAVING // 2)
    for number in range(BATCH):
        more = {"previous_response_id": draw.choice(previous)} if previous and number % 4 == 0 else {}
        reading.send(target, body(target, draw, tokens=draw.choice((1, 5, 20, 60)), **more))
    leaving.close()
    return [stream.id for stream in reading.finish()]


def body(target: Target, draw: random.Random, *, tokens: int, **more: Any) -> dict[str, Any]:
    """A request for so many tokens."""
    text = words(draw.choice((3, 30, 300)), seed=draw.random()).strip()
    return target.body([{"role": "user", "content": text}], tokens=tokens, **more)


def resident(server: LiveServer) -> int:
    """Bytes of memory of the server's processes."""
    if server.process is None or server.process.poll() is not None:
        raise RequestFailed("the server has ended")
    return usage_of(server.process.pid).memory_bytes
