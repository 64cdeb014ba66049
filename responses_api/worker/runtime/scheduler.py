"""What engines are given to do, and what is taken away from them again."""

import structlog

from inference.types import Chunk, GenerationRequest, ModelError, Sink
from responses_api.interruptions import StopReason
from responses_api.worker.generation.run import Run

from .hosted_models import ModelHost
from .run_table import RunTable

log = structlog.get_logger(__name__)


class Scheduler:
    """Any thread may call. Each sequence that is submitted ends with a chunk in ``sink``, whatever becomes of it."""

    def __init__(self, *, table: RunTable, host: ModelHost, sink: Sink) -> None:
        self._table = table
        self._host = host
        self._sink = sink

    def submit(self, run: Run, request: GenerationRequest | None) -> None:
        """Have the engine of a run's model generate; ``None`` when there is nothing to generate.

        An interactive request that finds the engine full preempts a background job.
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
            # Stopped between our look and the submission, when the engine did not know it.
            engine.cancel(run.sequence_id)
        elif not run.is_job and load.running + load.waiting >= load.slots:
            # Not before: what waits in the engine already would take the slot.
            preempted = self._table.preempt(run.model)
            if preempted is not None:
                engine.cancel(preempted)

    def stop(self, run: Run, reason: StopReason) -> None:
        """End a run early; the first reason counts."""
        run.stop(reason)
        self.cancel(run)

    def cancel(self, run: Run) -> None:
        """Have the engine end the sequence of a run that is to stop."""
        if self._table.of_sequence(run.sequence_id) is run:
            for model in self._host:
                model.engine.cancel(run.sequence_id)
