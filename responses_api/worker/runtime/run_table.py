"""The table of a worker's runs, by row, and of their open sequences."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from responses_api.worker.generation.run import Run


@dataclass(slots=True)
class _Sequence:
    run: Run
    has_slot: bool = False
    """Whether the engine is generating it now."""
    is_preempted: bool = False
    """Whether it has been removed from the engine, to be resumed later."""


class RunTable:
    """Any thread may call, and no call blocks. A run is in the table from its claim to its end.

    ``removed`` is called with each run after it was removed.
    """

    def __init__(self, *, removed: Callable[[Run], None]) -> None:
        self._removed = removed
        self._lock = threading.Lock()
        self._runs: dict[int, Run] = {}
        self._sequences: dict[str, _Sequence] = {}

    # Runs

    def add(self, run: Run) -> Run | None:
        """Add a claimed run; returns the run that it replaces, of an earlier attempt on the same row."""
        row = run.lease.response
        with self._lock:
            earlier = self._runs.get(row)
            self._runs[row] = run
        return earlier

    def remove(self, run: Run) -> None:
        """A run has ended in some way."""
        with self._lock:
            if self._runs.get(run.lease.response) is run:
                del self._runs[run.lease.response]
            self._sequences.pop(run.sequence_id, None)
        self._removed(run)

    def live(self) -> list[Run]:
        """All runs."""
        with self._lock:
            return list(self._runs.values())

    def count(self, model: str | None = None) -> int:
        """The number of runs, of all models or of one."""
        with self._lock:
            return len(self._runs) if model is None else sum(run.model == model for run in self._runs.values())

    def of_row(self, row: int) -> Run | None:
        """The run of the row with this primary key."""
        with self._lock:
            return self._runs.get(row)

    def of_response(self, public_id: str) -> Run | None:
        """The run of the response with this public id."""
        return next((run for run in self.live() if run.lease.public_id == public_id), None)

    # Sequences

    def open_sequence(self, run: Run) -> None:
        """The current sequence of a run is about to be submitted."""
        with self._lock:
            self._sequences[run.sequence_id] = _Sequence(run)

    def of_sequence(self, sequence_id: str) -> Run | None:
        """The run of an open sequence."""
        with self._lock:
            sequence = self._sequences.get(sequence_id)
        return sequence.run if sequence is not None else None

    def note_started(self, sequence_id: str) -> None:
        """The engine has started to generate a sequence."""
        with self._lock:
            sequence = self._sequences.get(sequence_id)
            if sequence is not None:
                sequence.has_slot = True

    def preempt(self, model: str) -> str | None:
        """Choose the job of a model that started last, for removal from the engine; returns its sequence's id."""
        with self._lock:
            for sequence_id, sequence in reversed(self._sequences.items()):
                run = sequence.run
                can_wait = run.is_job and not run.is_compacting and not run.is_to_stop()
                if run.model == model and can_wait and sequence.has_slot and not sequence.is_preempted:
                    sequence.is_preempted = True
                    return sequence_id
        return None

    def preempt_all(self, model: str) -> list[str]:
        """Mark all background jobs of a model as to be taken out of the engine; the ids of their sequences."""
        preempted = []
        with self._lock:
            for sequence_id, sequence in self._sequences.items():
                run = sequence.run
                if run.model == model and run.is_job and not (run.is_compacting or run.is_to_stop()):
                    sequence.is_preempted = True
                    preempted.append(sequence_id)
        return preempted

    def close_sequence(self, sequence_id: str) -> bool:
        """An engine has ended a sequence; returns whether it was preempted."""
        with self._lock:
            sequence = self._sequences.pop(sequence_id, None)
        return sequence is not None and sequence.is_preempted
