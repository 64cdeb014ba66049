"""Fakes for the surroundings of a worker's parts. They record their calls."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from inference.types import Chunk, EngineLoad, Finish, ModelError
from responses_api.interruptions import Interrupted, StopReason
from responses_api.services.jobs.leases import Lease
from responses_api.worker.generation.run import Run
from responses_api.worker.hosting import ModelHost
from responses_api.worker.runtime.scheduler import Scheduler

MODEL = "scripted"


@dataclass(eq=False)
class FakeRun:
    """A run that generates nothing."""

    row: int = 1
    attempt: int = 1
    model: str = MODEL
    is_job: bool = False
    is_compacting: bool = False
    stop_reason: StopReason | None = None
    published: Any = None
    fails: bool = False
    has_waited: bool = False
    fed: list[Chunk] = field(default_factory=list)

    @property
    def lease(self) -> Lease:
        return Lease(response=self.row, public_id=f"resp_{self.row}", worker="worker_1", attempt=self.attempt)

    @property
    def sequence_id(self) -> str:
        return f"resp_{self.row}.{self.attempt}"

    def stop(self, reason: StopReason) -> None:
        self.stop_reason = self.stop_reason or reason

    def is_to_stop(self) -> bool:
        return self.stop_reason is not None

    def wait_for_model(self) -> None:
        self.has_waited = True

    def feed(self, chunks: Sequence[Chunk]) -> Finish | None:
        if self.fails:
            raise RuntimeError("an unexpected error")
        self.fed += chunks
        return chunks[-1].finish

    @property
    def typed(self) -> Run:
        """This fake, typed as the original."""
        return cast("Run", self)


@dataclass
class FakeEngine:
    """An engine that generates nothing."""

    slots: int = 2
    running: int = 0
    is_gone: bool = False
    on_submit: Callable[[], object] = lambda: None
    submitted: list[Any] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    released: list[Collection[str]] = field(default_factory=list)

    def load(self) -> EngineLoad:
        return EngineLoad(running=self.running, waiting=0, slots=self.slots, free=self.slots - self.running)

    def submit(self, request: Any) -> None:
        if self.is_gone:
            raise ModelError("The engine has stopped.")
        self.submitted.append(request)
        self.on_submit()

    def cancel(self, sequence_id: str) -> None:
        self.cancelled.append(sequence_id)

    def forget(self, scope: str) -> None:
        self.forgotten.append(scope)

    def release(self, holders: Collection[str]) -> None:
        self.released.append(holders)


@dataclass
class FakeModel:
    """A model with a running engine."""

    engine: FakeEngine = field(default_factory=FakeEngine)
    refusal: str = ""


@dataclass
class FakeHost:
    """A host of one model."""

    model: FakeModel = field(default_factory=FakeModel)
    is_loaded: bool = True
    waiting: dict[Any, tuple[Callable[[], object], Callable[[Exception], object]]] = field(default_factory=dict)
    released: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=lambda: [MODEL])

    def __iter__(self) -> Iterator[FakeModel]:
        return iter([self.model])

    def __getitem__(self, name: str) -> FakeModel:
        assert name == MODEL
        return self.model

    @property
    def engine(self) -> FakeEngine:
        return self.model.engine

    def hold(self, run: Any, *, ready: Callable[[], object], failed: Callable[[Exception], object]) -> bool:
        if not self.is_loaded:
            self.waiting[run] = (ready, failed)
        return self.is_loaded

    def withdraw(self, run: Any) -> bool:
        if run not in self.waiting:
            return False
        _, failed = self.waiting.pop(run)
        failed(Interrupted())
        return True

    def release(self, run: Any) -> None:
        self.released.append(run)

    def takes_jobs(self, name: str) -> bool:
        return self.is_loaded

    @property
    def host(self) -> ModelHost:
        """This fake, typed as the original."""
        return cast("ModelHost", self)


@dataclass
class FakeScheduler:
    """Records runs and stops them, without an engine."""

    submitted: list[tuple[Any, Any]] = field(default_factory=list)
    cancelled: list[Any] = field(default_factory=list)

    def submit(self, run: Any, request: Any) -> None:
        self.submitted.append((run, request))

    def resubmit(self, run: Any, request: Any) -> None:
        self.submitted.append((run, request))

    def stop(self, run: Any, reason: StopReason) -> None:
        run.stop(reason)
        self.cancel(run)

    def cancel(self, run: Any) -> None:
        self.cancelled.append(run)

    @property
    def scheduler(self) -> Scheduler:
        """This fake, typed as the original."""
        return cast("Scheduler", self)
