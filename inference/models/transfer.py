"""Progress of work done by other code, measured by the size of its directory."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from inference.types import Progress

_INTERVAL = 0.25


def directory_bytes(directory: Path) -> int:
    """The size of all files below; files that vanish meanwhile are not counted."""
    total = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


@contextlib.contextmanager
def watched(stage: str, directory: Path, expected: int, progress: Progress) -> Iterator[None]:
    """Report the progress of `stage` while the block runs, as `directory` grows to `expected` bytes; 1.0 on success."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_INTERVAL):
            progress(stage, min(0.99, directory_bytes(directory) / max(1, expected)))

    progress(stage, 0.0)
    thread = threading.Thread(target=watch, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    progress(stage, 1.0)
