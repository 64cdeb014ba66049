"""A process with both tiers of the cache, for the tests of the disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inference.prefix_cache.disk_cache import DiskCache, DiskOptions
from inference.prefix_cache.layout import Layout
from inference.prefix_cache.prefix_cache import Hit, PrefixCache

from .fakes import Tokens, check_state, new_state

SECRET = b"s" * 32
PROMPT = tuple(range(1, 12))


class Process:
    """A process with both tiers, whose disk does what it is asked to before the next step."""

    def __init__(self, directory: Path, kind: str = "full", **options: Any) -> None:
        self.kind = kind
        model, secret = options.pop("model", "m"), options.pop("secret", SECRET)
        signature, memory = options.pop("signature", "s"), options.pop("memory", 10**9)
        self.disk = DiskCache(
            DiskOptions(directory=directory, secret=secret, max_bytes=options.pop("max_bytes", 10**9)), model=model
        )
        layout = Layout(new_state(kind, (1,)))
        self.disk.open(layout, signature)
        self.disk.settle()
        self.cache = PrefixCache(memory, layout, disk=self.disk)

    def insert(self, tokens: Tokens, *, scope: str = "a", on_disk: bool = True, holder: str = "") -> None:
        self.cache.insert(scope, tokens, new_state(self.kind, tokens), on_disk=on_disk, holder=holder)
        self.disk.settle()

    def fetch(self, prompt: Tokens, *, scope: str = "a") -> Hit:
        """As the engine does; what is found is right."""
        reading = self.cache.read(scope, prompt)
        self.disk.settle()
        hit = self.cache.fetch(scope, prompt, reading=reading)
        if hit.cache is not None:
            check_state(hit.cache, prompt[: hit.covered])
        return hit

    def covered(self, prompt: Tokens, *, scope: str = "a") -> int:
        return self.fetch(prompt, scope=scope).covered

    def close(self) -> None:
        self.disk.close()


@contextmanager
def running(directory: Path, kind: str = "full", **options: Any) -> Iterator[Process]:
    process = Process(directory, kind, **options)
    try:
        yield process
    finally:
        process.close()


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def size(directory: Path) -> int:
    return sum(path.stat().st_size for path in files(directory))
