"""Records when an engine emits its tokens, to measure their delay to a client."""

import atexit
import functools
import json
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from .patching import patch_on_import
from .points import EMISSIONS


def install(directory: Path) -> None:
    """Record the tokens of this process, and write ``emissions-PID.json`` at its end.

    The file has the time of each token by response, from the clock of `time.perf_counter`.
    """
    times: dict[str, list[float]] = defaultdict(list)

    def recording(emit: Any, _: str) -> Any:
        @functools.wraps(emit)
        def call(self: Any, chunks: Any) -> Any:
            now = time.perf_counter()
            for chunk in chunks:
                if chunk.tokens:
                    times[chunk.request_id.partition(".")[0]] += [now] * len(chunk.tokens)
            return emit(self, chunks)

        return call

    def write() -> None:
        if times:
            (directory / f"emissions-{os.getpid()}.json").write_text(json.dumps(times))

    atexit.register(write)
    patch_on_import((point, recording) for point in EMISSIONS)


def read_emissions(directory: Path) -> dict[str, list[float]]:
    """The times of all processes, by response."""
    return {
        response: times
        for file in directory.glob("emissions-*.json")
        for response, times in json.loads(file.read_text()).items()
    }
