"""Processor time and memory of a server's processes, from /proc; elsewhere from `ps`."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Usage(NamedTuple):
    """The usage of a process and its descendants."""

    cpu_seconds: float
    """User and system time, including ended children."""
    memory_bytes: int
    """Resident memory; shared pages are counted for each process."""


class _Row(NamedTuple):
    """One process."""

    parent: int
    cpu_seconds: float
    memory_bytes: int
    name: str


def usage_of(pid: int, *, also: Sequence[str] = ()) -> Usage:
    """The usage of a process and its descendants now, and of all processes with the names ``also``."""
    table = _linux_table() if sys.platform == "linux" else _ps_table()
    tree = {*_descendants(pid, table), *(number for number, row in table.items() if row.name in also)}
    rows = [table[number] for number in tree if number in table]
    return Usage(sum(row.cpu_seconds for row in rows), sum(row.memory_bytes for row in rows))


class ThreadUsage(NamedTuple):
    """The usage of one thread of the system."""

    cpu_seconds: float
    queued_seconds: float
    """Time in which it was ready to run but had no core."""


def thread_usage(pid: int) -> dict[int, dict[int, ThreadUsage]]:
    """The usage of each thread of a process and its descendants, by process; empty if the system doesn't provide it."""
    if sys.platform != "linux":
        return {}
    usage: dict[int, dict[int, ThreadUsage]] = {}
    for number in _descendants(pid, _linux_table()):
        usage[number] = {}
        for task in (_PROC / str(number) / "task").glob("*"):
            try:
                running, queued, _ = (task / "schedstat").read_text().split()
            except OSError:
                continue  # it has ended
            usage[number][int(task.name)] = ThreadUsage(int(running) / 1e9, int(queued) / 1e9)
    return usage


def _descendants(pid: int, table: Mapping[int, _Row]) -> list[int]:
    pids, new = [pid], {pid}
    while new:
        new = {number for number, row in table.items() if row.parent in new}
        pids += new
    return pids


def _linux_table() -> dict[int, _Row]:
    """Every process; ended ones are counted with their parents."""
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    table = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                begin, _, rest = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            fields = rest.split()
            seconds = sum(map(int, fields[11:15])) / ticks
            table[int(entry.name)] = _Row(int(fields[1]), seconds, int(fields[21]) * page, begin.partition("(")[2])
    return table


def _ps_table() -> dict[int, _Row]:
    columns = "pid=,ppid=,rss=,time=,comm="
    shown = subprocess.run(["ps", "-axo", columns], capture_output=True, text=True, check=True).stdout
    table = {}
    for line in shown.splitlines():
        pid, parent, kilobytes, spent, name = line.split(maxsplit=4)
        seconds = 0.0
        for part in spent.replace("-", ":").split(":"):
            seconds = 60 * seconds + float(part)
        table[int(pid)] = _Row(int(parent), seconds, int(kilobytes) * 1024, Path(name).name)
    return table
