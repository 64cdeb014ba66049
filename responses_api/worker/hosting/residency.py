"""Decides which model is loaded or unloaded next. Pure.

Models that interactive requests wait for are loaded in the order of their oldest request. Idle models are unloaded for
the first of them, the least recently used one first. If these don't have enough memory, models in use are drained:
their running requests end, and their new requests wait. Once a model is drained, it stays drained until the other one
is loaded: otherwise two models in constant use would be drained in turn, and neither of them would ever become idle.
Background jobs don't cause draining.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """The state of a model on which decisions depend. Sizes are in bytes, times in seconds of one clock."""

    name: str
    is_loaded: bool
    size: int
    """The memory that it needs with a short sequence; for a loaded model, that of its weights."""
    is_pinned: bool = False
    is_listed: bool = True
    """Whether its files exist, so that it may be loaded."""
    in_use: bool = False
    """Whether requests use it."""
    is_drained: bool = False
    """Whether the last decision drained it."""
    last_used: float = 0.0
    waited_for_since: float | None = None
    """The arrival time of the oldest interactive request that waits for it."""
    jobs_wait: bool = False
    """Whether background jobs wait for it."""
    lacks: int = 0
    """The memory that its engine's sequences need and don't have."""
    lacks_since: float = 0.0
    has_failed: bool = False
    """Whether its engine has stopped by itself: then it is loaded again without a request."""
    paused_until: float = 0.0
    """It is not loaded before this time, as it failed recently."""
    is_running: bool = False
    """Whether its engine has memory for at least one sequence."""

    @property
    def is_wanted(self) -> bool:
        """Whether requests or sequences wait for it."""
        return self.waited_for_since is not None or self.jobs_wait or self.lacks > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The next action: at most one of ``load``, ``unload`` and ``give_up`` names a model."""

    load: str = ""
    unload: str = ""
    give_up: str = ""
    """A model for which there is not enough memory, whichever models are unloaded."""
    drained: frozenset[str] = frozenset()
    """Models whose new requests wait, until the running ones have ended."""
    again_at: float | None = None
    """The time of the next decision if nothing changes before."""


def decide(models: Sequence[Resident], *, free: int, ttl: float, now: float) -> Decision:
    """Decide. ``free``: unreserved bytes; ``ttl``: seconds until an idle model is unloaded, 0 for never."""
    for wanted in _in_turn([model for model in models if model.paused_until <= now]):
        decision = _make_room(wanted, models, free)
        if decision is not None:
            return decision
    expired, again_at = None, None
    for model in models:
        if model.paused_until > now and (model.has_failed or model.is_pinned or model.is_wanted):
            again_at = model.paused_until if again_at is None else min(again_at, model.paused_until)
        if not model.is_loaded or model.in_use or model.is_wanted:
            continue
        if not model.is_listed:
            return Decision(unload=model.name)
        if ttl and not model.is_pinned:
            until = model.last_used + ttl
            expired = expired or (model if until <= now else None)
            again_at = until if again_at is None else min(again_at, until)
    return Decision(unload=expired.name) if expired is not None else Decision(again_at=again_at)


def _in_turn(models: Sequence[Resident]) -> Iterator[Resident]:
    """The models that need memory: for interactive requests, in their order; for jobs; pinned and failed ones."""
    wanted = [model for model in models if model.lacks or (not model.is_loaded and model.is_wanted)]
    yield from sorted((model for model in wanted if _asked_at(model) is not None), key=lambda m: _asked_at(m) or 0.0)
    yield from (model for model in wanted if _asked_at(model) is None)
    idle = [model for model in models if model.is_listed and not (model.is_loaded or model.is_wanted)]
    yield from (model for model in idle if model.is_pinned or model.has_failed)


def _asked_at(model: Resident) -> float | None:
    return model.lacks_since if model.is_loaded else model.waited_for_since


def _make_room(wanted: Resident, models: Sequence[Resident], free: int) -> Decision | None:
    """The next action for a model; None if there is none now, and others may be considered."""
    missing = wanted.lacks if wanted.is_loaded else wanted.size - free
    if missing <= 0:
        return None if wanted.is_loaded else Decision(load=wanted.name)
    others = [model for model in models if model.is_loaded and not model.is_pinned and model.name != wanted.name]
    others.sort(key=lambda model: (model.in_use, not model.is_drained, model.last_used))
    idle = _first_with(missing, [model for model in others if not model.in_use])
    if idle is not None:
        # The others of them are unloaded next, so no request may begin on them meanwhile.
        return Decision(unload=idle[0].name, drained=frozenset(model.name for model in idle[1:]))
    if _asked_at(wanted) is None or wanted.is_running:
        return None
    drained = _first_with(missing, others)
    if drained is not None:
        return Decision(drained=frozenset(model.name for model in drained))
    return None if wanted.is_loaded else Decision(give_up=wanted.name)


def _first_with(size: int, models: Sequence[Resident]) -> Sequence[Resident] | None:
    """The shortest list of the first models with ``size`` bytes together; None if all of them have fewer."""
    total = 0
    for number, model in enumerate(models):
        total += model.size
        if total >= size:
            return models[: number + 1]
    return None
