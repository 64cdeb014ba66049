"""How much a sweep does in one transaction, and how long it leaves the database to others after it."""

import time
from collections.abc import Callable

from django.db import connection

from .chores import take_chore

CHORE = "sweep"
SHORTEST_PAUSE_SECONDS = 0.005
BATCHES = {"sqlite": 100, "postgresql": 400}
"""SQLite has one writer, which heartbeats and new requests wait for; a batch of so many takes it some 30 ms."""
REST = {"sqlite": 1.0, "postgresql": 0.25}
"""The pause after a batch, in times of what the batch took. PostgreSQL's writers don't wait for each other."""


def sweep_batch() -> int:
    """How many responses or conversations are removed in one transaction."""
    return BATCHES[connection.vendor]


class SweepStopped(Exception):
    """This process stops, or another one sweeps."""


class Pace:
    """Called after each step of a sweep: sleeps a while, and keeps the sweep's lease."""

    def __init__(self, *, process: str, sleep: Callable[[float], bool]) -> None:
        self._process = process
        self._sleep = sleep
        self._began = time.monotonic()

    def __call__(self) -> None:
        """Raises :class:`SweepStopped` when the sweep is to end here."""
        took = time.monotonic() - self._began
        if self._sleep(max(SHORTEST_PAUSE_SECONDS, took * REST[connection.vendor])):
            raise SweepStopped
        self._began = time.monotonic()
        if not take_chore(CHORE, holder=self._process):
            raise SweepStopped
