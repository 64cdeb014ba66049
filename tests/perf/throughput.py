"""Eight streams through the whole server against a bare `BatchGenerator`, on the same prompts in one run.

Passes alternate: bare, server, bare, server, …; each has prompts of its own, the same for both. Greedy, 96 new tokens,
prefix cache off on both sides. Tokens a second are output tokens over the time from the first send to the last token.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from inference import Registry
from responses_site.setting_kinds import BASE_DIR
from tests.live.server import LiveServer

from .latency import request_bytes

STREAMS, NEW_TOKENS, PASSES = 8, 96, 3
LIMIT = 0.9
SETTINGS = {"RESPONSES_ENGINE": "mlx", "RESPONSES_PROMPT_CACHE_MAX_BYTES": "0"}


def prompts(number: int) -> list[str]:
    """The prompts of a pass, about 40 tokens each."""
    things = ("lighthouse", "bakery", "railway", "garden", "library", "harbour", "orchestra", "glacier")
    return [
        f"Write a long story, with many details, about a {thing} that changed the life of a small town in the year "
        f"{1800 + 10 * number + place}. Begin with the weather on the first morning."
        for place, thing in enumerate(things[:STREAMS])
    ]


async def stream_tokens(url: str, prompt: str) -> int:
    """Run one stream to its end; its output tokens by its usage."""
    payload = {"input": prompt, "stream": True, "temperature": 0, "max_output_tokens": NEW_TOKENS, "store": True}
    host, port, request = request_bytes(url, payload)
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    try:
        writer.write(request)
        answer = await reader.read()
    finally:
        writer.close()
    last = [line for line in answer.split(b"\n") if line.startswith(b"data: {")][-1]
    tokens: int = json.loads(last[6:])["response"]["usage"]["output_tokens"]
    return tokens


async def server_pass(url: str, number: int) -> float:
    """Tokens a second through the server."""
    started = time.perf_counter()
    tokens = await asyncio.gather(*(stream_tokens(url, prompt) for prompt in prompts(number)))
    return sum(tokens) / (time.perf_counter() - started)


class Bare:
    """The bare generator in a process of its own, which is idle while the server is measured."""

    def __init__(self, model: Path, libraries: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.perf.bare_generator", str(model), str(libraries), str(NEW_TOKENS)],
            cwd=BASE_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._line() == "ready"

    def run(self, texts: list[str]) -> float:
        """Tokens a second for these prompts."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(texts) + "\n")
        self.process.stdin.flush()
        return float(self._line())

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def report(server: LiveServer) -> bool:
    """Measure a running server with the default model, print, and say whether it is good enough."""
    (entry, *_) = Registry(server.data_dir).list_models()
    bare = Bare(entry.path, server.data_dir / "libraries")
    try:
        bare.run(prompts(-1)[:2])
        asyncio.run(server_pass(server.url, -2))
        pairs = [(bare.run(prompts(number)), asyncio.run(server_pass(server.url, number))) for number in range(PASSES)]
    finally:
        bare.close()
    ratio = statistics.median(through / alone for alone, through in pairs)
    good = ratio >= LIMIT
    shown = ", ".join(f"{through:.1f}/{alone:.1f}" for alone, through in pairs)
    print(
        f"{STREAMS} streams, tokens a second, server/bare: {shown}; median ratio {ratio:.3f} (limit {LIMIT:g}): "
        f"{'good' if good else 'MISSED'}"
    )
    return good
