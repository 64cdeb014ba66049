"""Submits sequences to engines, and cancels them."""

import structlog

from inference.types import Chunk, GenerationRequest, ModelError, Sink
from responses_api.interruptions import StopReason
from responses_api.worker.generation.run import Run
from responses_api.worker.hosting import ModelHost

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
        self._table.open_sequence(run)
        if request is None or run.is_to_stop():
            self._sink([Chunk(request_id=run.sequence_id, finish="cancelled" if run.is_to_stop() else "stop")])
            return
        is_loaded = self._host.hold(
            run, ready=lambda: self._submit(run, request), failed=lambda error: self._not_loaded(run, error)
        )
        if is_loaded:
            self._submit(run, request)
            return
        run.wait_for_model()
        if run.is_to_stop():
            # Stopped before it waited.
            self._host.withdraw(run)

    def resubmit(self, run: Run, request: GenerationRequest | None) -> None:
        """Submit the rest of a sequence that was preempted. Meanwhile its model may have to make room for others."""
        self._host.release(run)
        self.submit(run, request)

    def _not_loaded(self, run: Run, error: Exception) -> None:
        """The model of a run can't be loaded, or the run is to stop while it waits for that."""
        if isinstance(error, ModelError):
            log.error("worker.request_not_run", model=run.model, response=run.lease.public_id, error=str(error))
            run.stop(StopReason.NOT_LOADED)
        self._sink([Chunk(request_id=run.sequence_id, finish="cancelled")])

    def _submit(self, run: Run, request: GenerationRequest) -> None:
        try:
            engine = self._host[run.model].engine
            load = engine.load()
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
        """Make the engine end the sequence of a run; or make the run wait for its model no longer."""
        if not self._host.withdraw(run) and self._table.of_sequence(run.sequence_id) is run:
            for model in self._host:
                model.engine.cancel(run.sequence_id)

    def preempt_jobs(self, name: str) -> None:
        """Take the background jobs out of the engine of a model, which has to make room for another one."""
        for sequence_id in self._table.preempt_all(name):
            self._host[name].engine.cancel(sequence_id)
