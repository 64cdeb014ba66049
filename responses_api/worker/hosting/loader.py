"""The thread that loads and unloads models, one after the other."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog
from django.conf import settings

from inference.types import ModelError, Progress
from responses_api.services.processes.freed_memory import return_freed_memory

from .hosted_model import HostedModel, Phase, Waiter, paused
from .residency import Decision, decide

if TYPE_CHECKING:
    from .model_host import ModelHost

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.25
"""Interval between decisions while requests wait."""
HOPELESS = "There is not enough memory for this model."


class Loader:
    """Carries out the decisions of :func:`decide` on the models of a host, whose lock it shares."""

    def __init__(self, host: "ModelHost", changed: threading.Condition) -> None:
        self._host = host
        self._changed = changed
        self._drain: Callable[[str], object] = lambda name: None
        self._notify: Callable[[], object] = lambda: None
        self._thread: threading.Thread | None = None
        self.is_stopping = False
        self._has_news = False

    def start(self, *, drain: Callable[[str], object], changed: Callable[[], object]) -> None:
        """Start the thread; see :meth:`ModelHost.start`."""
        self._drain, self._notify = drain, changed
        self._host.budget.listen(self.look)
        self._thread = threading.Thread(target=self._run, name="model-loader", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread. Returns when the model that is being loaded is ready."""
        self.is_stopping = True
        self.look()
        thread, self._thread = self._thread, None
        if thread is not None:
            self._host.budget.unlisten(self.look)
            thread.join()

    def load(self, model: HostedModel, *, progress: Progress | None = None) -> None:
        """Load a model, for which there must be memory.

        Raises :class:`ModelError`, and passes the error to all requests that wait for it.
        """
        with self._changed:
            has_stopped, model.phase = model.phase is Phase.LOADED, Phase.LOADING
        self._notify()
        try:
            if has_stopped:
                model.backoff.note_failure()
                pause = round(model.backoff.remaining, 1)
                log.error("worker.engine_replaced", model=model.name, pause_seconds=pause)
                model.replace_engine()
            if model.is_pausing:
                raise paused(model)
            self._start(model, progress)
        except ModelError as error:
            log.error("worker.model_not_loaded", model=model.name, error=str(error), requests=self._waiting(model))
            with self._changed:
                model.phase = Phase.UNLOADED
                waiting = model.take_waiting()
            for waiter in waiting:
                waiter.failed(error)
            raise
        else:
            with self._changed:
                model.phase, model.was_loaded = Phase.LOADED, True
                # Immediately: otherwise the model might be unloaded for others before these requests use it.
                ready = model.grant()
            for waiter in ready:
                waiter.ready()
        finally:
            self._notify()

    def _start(self, model: HostedModel, progress: Progress | None) -> None:
        try:
            model.start(progress)
        except ModelError:
            model.backoff.note_failure()
            raise
        model.backoff.note_start()

    def _unload(self, model: HostedModel) -> None:
        log.info("worker.model_unloaded", model=model.name)
        model.replace_engine()
        return_freed_memory(at_once=True)
        with self._changed:
            model.phase = Phase.UNLOADED
        self._notify()

    def _waiting(self, model: HostedModel) -> list[str]:
        with self._changed:
            return [holder.request_id for holder in model.waiting]

    def look(self) -> None:
        """Decide again, since something has changed."""
        with self._changed:
            self._has_news = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self.is_stopping:
                    return
                self._has_news = False
                decision = self._decide()
                ready = self._granted(decision)
            try:
                for waiter in ready:
                    waiter.ready()
                self._act(decision, is_idle=not ready)
            except Exception:  # the thread must go on for the other models
                log.exception("worker.loader_failed")
                time.sleep(LOOK_SECONDS)

    def _decide(self) -> Decision:
        now = time.monotonic()
        return decide(
            self._host.residents(now),
            free=self._host.budget.free,
            ttl=settings.RESPONSES_MODEL_TTL_SECONDS,
            now=now,
        )

    def _granted(self, decision: Decision) -> list[Waiter]:
        """Apply a decision to the models. Returns the requests whose model is loaded, and which hold it now."""
        ready: list[Waiter] = []
        for model in self._host:
            model.is_drained = model.name in decision.drained
            if model.name == decision.unload:
                model.phase, model.was_loaded = Phase.UNLOADING, False
            elif model.is_running and not model.is_drained and model.waiting:
                ready += model.grant()
        return ready

    def _act(self, decision: Decision, *, is_idle: bool) -> None:
        if decision.load:
            try:
                self.load(self._host[decision.load])
            except ModelError:
                return  # the waiting requests have failed
        elif decision.unload:
            self._unload(self._host[decision.unload])
        elif decision.give_up:
            self._give_up(self._host[decision.give_up])
        else:
            for name in decision.drained:
                self._drain(name)
            if is_idle:
                self._wait(decision)

    def _give_up(self, model: HostedModel) -> None:
        log.error("worker.model_not_loaded", model=model.name, error=HOPELESS, requests=self._waiting(model))
        with self._changed:
            waiting = model.take_waiting()
        for waiter in waiting:
            waiter.failed(ModelError(HOPELESS))

    def _wait(self, decision: Decision) -> None:
        with self._changed:
            is_wanted = any(model.waiting or model.account.lacks for model in self._host)
            seconds = None if decision.again_at is None else max(0.0, decision.again_at - time.monotonic())
            if is_wanted:
                seconds = LOOK_SECONDS if seconds is None else min(seconds, LOOK_SECONDS)
            if not (self.is_stopping or self._has_news):
                self._changed.wait(seconds)
