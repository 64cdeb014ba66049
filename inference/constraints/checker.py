"""Checks callers' grammars in separate processes, within limits on CPU time and memory.

llguidance can't be interrupted, and an ambiguous grammar of 8 KB keeps it busy for more than a minute. Standard library
only.
"""

import atexit
import json
import logging
import os
import queue
import selectors
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from inference.types import Constraint

CPU_SECONDS = 1.0
"""CPU time for one check. A grammar of 5,000 words takes 0.1 s. The worker's compilation takes two to three times as
long."""
WALL_SECONDS = 30.0
"""Most time to wait for a check, however busy the machine is."""
PROCESSES = 2
TOO_SLOW = "it takes too long to check, since texts can be read in too many ways"
TOO_LARGE = "it is too large"
_CRASHES = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS)
"""The exit statuses of a process that has run out of memory."""

log = logging.getLogger(__name__)

_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of a check."""

    error: str
    """Why the constraint can't be enforced, a phrase of one line; empty when it can."""
    seconds: float
    """CPU time used."""


class CheckInterrupted(Exception):
    """The check did not end, for a reason other than the constraint: it may be tried again."""


class Checker:
    """A fixed number of check processes, started when first needed and again when one has ended. Thread-safe."""

    def __init__(self, *, processes: int = PROCESSES, seconds: float = CPU_SECONDS) -> None:
        self._seconds = seconds
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes] | None] = queue.SimpleQueue()
        self._processes = processes
        for _ in range(processes):
            self._idle.put(None)

    def check(self, constraint: Constraint) -> Checked:
        """Check one constraint; waits while all processes are busy. Raises :class:`CheckInterrupted`."""
        process = self._idle.get()
        try:
            while True:
                if process is None or process.poll() is not None:
                    _close(process)
                    process = _start()
                if (checked := self._ask(process, constraint)) is not None:
                    return checked
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """End the processes. Waits for checks that are under way."""
        for process in [self._idle.get() for _ in range(self._processes)]:
            _close(process)
            self._idle.put(None)

    def _ask(self, process: subprocess.Popen[bytes], constraint: Constraint) -> Checked | None:
        """The outcome; None if the process had ended before."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps([constraint.kind, constraint.text, self._seconds]).encode() + b"\n")
            process.stdin.flush()
            if not _is_readable(process.stdout.fileno()):
                process.kill()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if line:
            return Checked(*json.loads(line))
        status = process.wait()
        if status == 0:
            return None
        if status == -signal.SIGPROF:
            return Checked(TOO_SLOW, self._seconds)
        if status in _CRASHES:
            return Checked(TOO_LARGE, self._seconds)
        log.error("a check process ended with status %d", status)
        raise CheckInterrupted


def _start() -> subprocess.Popen[bytes]:
    # Only the path to Python: the process gets none of the secrets in the server's environment.
    return subprocess.Popen(
        [sys.executable, "-m", "inference.constraints.check_process"],
        cwd=_ROOT,
        env={name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _is_readable(descriptor: int) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(WALL_SECONDS))


def _close(process: subprocess.Popen[bytes] | None) -> None:
    if process is None:
        return
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


_checker = Checker()
atexit.register(_checker.close)


def check_within_budget(constraint: Constraint) -> Checked:
    """Check one constraint of a caller; waits while all check processes are busy. Any thread.

    Raises :class:`CheckInterrupted`.
    """
    return _checker.check(constraint)
