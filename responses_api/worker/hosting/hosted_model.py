"""One model of a worker: its engine, the requests that use it, and those that wait for it."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Any, Protocol

from inference.memory import Account, Footprint
from inference.types import ChatTokenizer, Engine, EngineLoad, ModelError

from .residency import Resident
from .restart_backoff import RestartBackoff


class ModelState(StrEnum):
    """The state of a model that a worker announces."""

    UNLOADED = "unloaded"
    """The next request for it loads it."""
    LOADING = "loading"
    IDLE = "idle"
    """It is loaded, and no request uses it."""
    ACTIVE = "active"
    """It is loaded, and requests use it."""
    TOO_LARGE = "too_large"
    """It never fits into memory."""


class Phase(Enum):
    """The phases of loading and unloading."""

    UNLOADED = auto()
    LOADING = auto()
    LOADED = auto()
    UNLOADING = auto()


class Holder(Protocol):
    """A request that uses a model. Requests are compared by identity."""

    model: str
    is_job: bool
    """Whether it is a background job, which waits until there is memory."""
    request_id: str


@dataclass(frozen=True, slots=True)
class Waiter:
    """A request that waits for a model. One of its functions is called by any thread, and must not block."""

    holder: Holder
    ready: Callable[[], object]
    failed: Callable[[Exception], object]
    since: float = field(default_factory=time.monotonic)


@dataclass(slots=True, kw_only=True, eq=False)
class HostedModel:
    """A model and its state, which is written under the host's lock."""

    facts: dict[str, Any]
    refusal: str
    """The reason why it never fits into memory; empty if it does."""
    footprint: Footprint
    size: int
    """The bytes of memory that it needs with a short sequence."""
    account: Account
    tokenizer: ChatTokenizer
    engine: Engine
    make_engine: Callable[[], Engine]
    is_pinned: bool = False
    is_listed: bool = True
    phase: Phase = Phase.UNLOADED
    is_drained: bool = False
    """Whether new requests wait until those that use it have ended."""
    was_loaded: bool = False
    """Whether it was loaded, and not unloaded on purpose since."""
    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    holders: set[Holder] = field(default_factory=set)
    waiting: dict[Holder, Waiter] = field(default_factory=dict)
    last_used: float = field(default_factory=time.monotonic)
    lacks_since: float = 0.0

    @property
    def name(self) -> str:
        """The model's own name."""
        return str(self.facts["name"])

    @property
    def is_running(self) -> bool:
        """Whether it is loaded and its engine runs."""
        return self.phase is Phase.LOADED and self.engine.is_running

    @property
    def is_pausing(self) -> bool:
        """Whether it has failed too recently to be loaded."""
        return self.backoff.remaining > 0

    @property
    def state(self) -> ModelState:
        """The announced state."""
        if self.refusal:
            return ModelState.TOO_LARGE
        if self.is_running:
            return ModelState.ACTIVE if self.holders else ModelState.IDLE
        return ModelState.LOADING if self.phase is Phase.LOADING else ModelState.UNLOADED

    @property
    def announcement(self) -> dict[str, Any]:
        """What web processes learn about it."""
        account = self.account
        return {
            **self.facts,
            "context_length": self.engine.info.context_length,
            "state": self.state.value,
            "memory_bytes": account.weights + account.state + account.cache,
            "is_pinned": self.is_pinned,
            "refusal": self.refusal,
        }

    def load(self) -> EngineLoad:
        """The load of its engine."""
        return self.engine.load()

    def take_waiting(self) -> list[Waiter]:
        """Remove and return all waiting requests."""
        waiting = list(self.waiting.values())
        self.waiting.clear()
        return waiting

    def grant(self) -> list[Waiter]:
        """Let all waiting requests hold it. Returns them."""
        self.last_used = time.monotonic()
        self.holders.update(self.waiting)
        return self.take_waiting()

    def resident(self, now: float) -> Resident:
        """Its state for a decision."""
        lacks = self.account.lacks if self.is_running else 0
        self.lacks_since = (self.lacks_since or now) if lacks else 0.0
        interactive = [waiter.since for waiter in self.waiting.values() if not waiter.holder.is_job]
        return Resident(
            name=self.name,
            is_loaded=self.is_running,
            size=self.account.weights if self.is_running else self.size,
            is_pinned=self.is_pinned,
            is_listed=self.is_listed,
            in_use=bool(self.holders),
            is_drained=self.is_drained,
            last_used=self.last_used,
            waited_for_since=min(interactive, default=None),
            jobs_wait=len(self.waiting) > len(interactive),
            lacks=lacks,
            lacks_since=self.lacks_since,
            has_failed=self.was_loaded and not self.is_running,
            paused_until=now + self.backoff.remaining if self.is_pausing else 0.0,
            is_running=self.is_running and self.account.state > 0,
        )

    def start(self, progress: Callable[[str, float], None] | None) -> None:
        """Start its engine. Raises :class:`ModelError` after releasing its memory."""
        self.account.set_weights(self.footprint.loading)
        try:
            self.engine.start(progress=progress)
        except BaseException:
            self.account.close()
            raise
        # Not at the same time: both import transformers, which can't be imported by two threads at once.
        threading.Thread(target=self._load_tokenizer, name=f"tokenizer-{self.name}", daemon=True).start()

    def _load_tokenizer(self) -> None:
        """So that the first request need not, unless it comes at once."""
        with suppress(ModelError):  # which the first request gets, too
            self.tokenizer.load()

    def replace_engine(self) -> None:
        """Close its engine, which releases its memory, and create a new one, not started."""
        self.engine.close()
        self.engine = self.make_engine()
        self.account.close()


def paused(model: HostedModel) -> ModelError:
    """The error for a model that has failed too recently."""
    return ModelError(f"The engine of {model.name} failed, and starts in {model.backoff.remaining:.0f} s.")


def gone(name: str) -> ModelError:
    """The error for a model that this worker no longer has."""
    return ModelError(f"There is no model {name!r} on this worker any more.")
