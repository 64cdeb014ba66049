"""Receives the messages of other processes to a worker."""

import asyncio
import threading
from collections.abc import Iterable

import structlog

from responses_api import bus
from responses_api.bus.messages import (
    CancelRow,
    CountTokens,
    ForgetResponses,
    ForgetScopes,
    RememberThoughts,
    ResendEvents,
    StopCounting,
)
from responses_api.interruptions import StopReason
from responses_api.services.prompts.reasoning_echo import reasoning_echo
from responses_api.worker.hosting import ModelHost

from .counting import Counter
from .ended_streams import EndedStreams
from .run_table import RunTable
from .scheduler import Scheduler

log = structlog.get_logger(__name__)


class Listener:
    """One thread with an event loop. It answers messages or passes them on, and never blocks."""

    def __init__(
        self,
        *,
        worker: str,
        table: RunTable,
        scheduler: Scheduler,
        counter: Counter,
        ended: EndedStreams,
        host: ModelHost,
    ) -> None:
        self._worker = worker
        self._table = table
        self._scheduler = scheduler
        self._counter = counter
        self._ended = ended
        self._host = host
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to listen, as soon as the broker is available."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(self._loop,), name="worker-listener", daemon=True)
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Stop listening."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        task = loop.create_task(self._listen())
        loop.run_forever()
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()

    async def _listen(self) -> None:
        subscription = None
        while subscription is None:
            try:
                subscription = await bus.subscribe(bus.process_group(self._worker))
            except bus.BusUnavailable:
                await asyncio.sleep(bus.RECONNECT_SECONDS)
        try:
            while True:
                message = await subscription.receive()
                try:
                    self._handle(message)
                except Exception:  # the next message must be handled
                    log.exception("worker.request_failed", type=type(message).__name__)
        finally:
            await subscription.close()

    def _handle(self, message: bus.Message | bus.Signal | None) -> None:
        match message:
            case CancelRow(row=row):
                run = self._table.of_row(row)
                if run is not None:
                    self._scheduler.stop(run, StopReason.CANCELLED if run.is_job else StopReason.LEFT)
            case ResendEvents(response=public_id, first=first):
                self._resend(public_id, first)
            case CountTokens():
                self._counter.ask(message)
            case StopCounting(reply=reply):
                self._counter.forget(reply)
            case RememberThoughts(scope=scope, thoughts=thoughts):
                reasoning_echo().add(scope, thoughts)
            case ForgetScopes(scopes=scopes):
                self._forget(scopes)
            case ForgetResponses(responses=responses):
                for model in self._host:
                    model.engine.release(responses)

    def _resend(self, public_id: str, first: int) -> None:
        published = self._ended.find(public_id)
        if published is None:
            run = self._table.of_response(public_id)
            published = run.published if run is not None else None
        if published is not None:
            published.replay(first)

    def _forget(self, scopes: Iterable[str]) -> None:
        """Drop everything in memory of owners that were deleted."""
        for scope in scopes:
            reasoning_echo().forget(scope)
            for model in self._host:
                model.engine.forget(scope)
