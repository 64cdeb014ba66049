"""The memory of a server's processes."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

PROC = Path("/proc")


def process_tree(pid: int) -> list[int]:
    """The ids of a process and its children."""
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [pid, *map(int, listed.stdout.split())]


def used(pids: Sequence[int]) -> int:
    """Resident bytes of these processes."""
    if PROC.joinpath("self/status").exists():
        return sum(_figure(pid, "VmRSS") for pid in pids)
    listed = subprocess.run(["ps", "-o", "rss=", "-p", ",".join(map(str, pids))], capture_output=True, text=True)
    return 1024 * sum(map(int, listed.stdout.split()))


def peak(pids: Sequence[int]) -> int:
    """Most resident bytes since `reset_peak`; the current ones if the system doesn't record them."""
    return sum(_figure(pid, "VmHWM") for pid in pids) if PROC.joinpath("self/status").exists() else used(pids)


def reset_peak(pids: Sequence[int]) -> None:
    """Forget earlier peaks."""
    for pid in pids:
        with contextlib.suppress(OSError):
            PROC.joinpath(str(pid), "clear_refs").write_text("5")


def _figure(pid: int, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in PROC.joinpath(str(pid), "status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return 1024 * int(line.split()[1])
    return 0
