"""How much a sweep removes in one transaction, and how long it pauses afterwards."""

import time
from collections.abc import Callable

from django.db import connection

from .chores import take_chore

CHORE = "sweep"
SHORTEST_PAUSE_SECONDS = 0.005
BATCHES = {"sqlite": 100, "postgresql": 400}
"""Entries per transaction. SQLite's takes some 30 ms, for which heartbeats and new requests wait."""
REST = {"sqlite": 1.0, "postgresql": 0.25}
"""The pause after a batch, as a multiple of the batch's duration. PostgreSQL's writers don't wait for each other."""


def sweep_batch() -> int:
    """How many responses or conversations are removed in one transaction."""
    return BATCHES[connection.vendor]


class SweepStopped(Exception):
    """This process is stopping, or another one has taken over the sweep."""


class Pace:
    """Called after each step of a sweep: sleeps, then renews the sweep's lease."""

    def __init__(self, *, process: str, sleep: Callable[[float], bool]) -> None:
        self._process = process
        self._sleep = sleep
        self._began = time.monotonic()

    def __call__(self) -> None:
        """Pause. Raises :class:`SweepStopped` when the sweep is to end here."""
        took = time.monotonic() - self._began
        if self._sleep(max(SHORTEST_PAUSE_SECONDS, took * REST[connection.vendor])):
            raise SweepStopped
        self._began = time.monotonic()
        if not take_chore(CHORE, holder=self._process):
            raise SweepStopped
