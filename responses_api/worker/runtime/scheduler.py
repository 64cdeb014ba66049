"""Submits sequences to engines, and cancels them."""

import structlog

from inference.types import Chunk, GenerationRequest, ModelError, Sink
from responses_api.interruptions import StopReason
from responses_api.worker.generation.run import Run

from .hosted_models import ModelHost
from .run_table import RunTable

log = structlog.get_logger(__name__)


class Scheduler:
    """Any thread may call. Each submitted sequence ends with a last chunk in ``sink``, in any case."""

    def __init__(self, *, table: RunTable, host: ModelHost, sink: Sink) -> None:
        self._table = table
        self._host = host
        self._sink = sink

    def submit(self, run: Run, request: GenerationRequest | None) -> None:
        """Submit a sequence to the engine of the run's model; ``None`` when nothing is generated.

        An interactive request preempts a background job when the engine is full.
        """
        engine = self._host[run.model].engine
        self._table.open_sequence(run)
        if request is None or run.is_to_stop():
            self._sink([Chunk(request_id=run.sequence_id, finish="cancelled" if run.is_to_stop() else "stop")])
            return
        load = engine.load()
        try:
            engine.submit(request)
        except ModelError as error:
            log.error("worker.engine_gone", model=run.model, error=str(error))
            self._sink([Chunk(request_id=run.sequence_id, finish="error")])
            return
        if run.is_to_stop():
            # Stopped between the check and the submission, when the engine did not know the sequence.
            engine.cancel(run.sequence_id)
        elif not run.is_job and load.running + load.waiting >= load.slots:
            # Not before the submission, since a sequence that waits in the engine would take the slot.
            preempted = self._table.preempt(run.model)
            if preempted is not None:
                engine.cancel(preempted)

    def stop(self, run: Run, reason: StopReason) -> None:
        """End a run early; the first reason counts."""
        run.stop(reason)
        self.cancel(run)

    def cancel(self, run: Run) -> None:
        """Make the engine end the sequence of a run."""
        if self._table.of_sequence(run.sequence_id) is run:
            for model in self._host:
                model.engine.cancel(run.sequence_id)
