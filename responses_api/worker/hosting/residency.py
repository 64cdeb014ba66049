"""Decides which model is loaded or unloaded next. Pure.

Requests for models that aren't loaded are served in the order in which they came. For the first of them, the models
that nobody uses make room, the least recently used one first. Where these don't have enough, others are drained: what
runs on them ends, what comes meanwhile waits. Background jobs only wait until room is there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """A model, as it is for this decision. Sizes are in bytes, times in seconds of one clock."""

    name: str
    is_loaded: bool
    size: int
    """What it takes when it is loaded, with a short sequence; or what its weights have, when it is."""
    is_pinned: bool = False
    is_listed: bool = True
    """Its files are there, and it may be loaded."""
    in_use: bool = False
    """Requests hold it."""
    last_used: float = 0.0
    waited_for_since: float | None = None
    """When the oldest of the interactive requests that wait for it came."""
    jobs_wait: bool = False
    """Background jobs wait for it."""
    lacks: int = 0
    """What sequences in its engine lack of memory."""
    lacks_since: float = 0.0
    has_failed: bool = False
    """It was loaded, and its engine has stopped by itself: it is loaded again without a request."""
    paused_until: float = 0.0
    """It has failed so often that it is not loaded before."""
    is_running: bool = False
    """Its engine has memory for at least one sequence."""

    @property
    def is_wanted(self) -> bool:
        """Whether anything waits for it."""
        return self.waited_for_since is not None or self.jobs_wait or self.lacks > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do now: at most one of `load`, `unload` and `give_up` names a model."""

    load: str = ""
    unload: str = ""
    give_up: str = ""
    """Not even all models together that could make room have enough for this one."""
    drained: frozenset[str] = frozenset()
    """Requests for these have to wait until those that run on them have ended."""
    again_at: float | None = None
    """When something is to be done if nothing else happens."""


def decide(models: Sequence[Resident], *, free: int, ttl: float, now: float) -> Decision:
    """`free`: bytes that are not reserved. `ttl`: how long a model stays loaded that nobody uses; 0 for ever."""
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
    """The models that need memory: for interactive requests by the time these came, for jobs, for themselves."""
    wanted = [model for model in models if model.lacks or (not model.is_loaded and model.is_wanted)]
    yield from sorted((model for model in wanted if _asked_at(model) is not None), key=lambda m: _asked_at(m) or 0.0)
    yield from (model for model in wanted if _asked_at(model) is None)
    idle = [model for model in models if model.is_listed and not (model.is_loaded or model.is_wanted)]
    yield from (model for model in idle if model.is_pinned or model.has_failed)


def _asked_at(model: Resident) -> float | None:
    return model.lacks_since if model.is_loaded else model.waited_for_since


def _make_room(wanted: Resident, models: Sequence[Resident], free: int) -> Decision | None:
    """What to do for a model; None when nothing can be done now and others may have their turn."""
    missing = wanted.lacks if wanted.is_loaded else wanted.size - free
    if missing <= 0:
        return None if wanted.is_loaded else Decision(load=wanted.name)
    others = [model for model in models if model.is_loaded and not model.is_pinned and model.name != wanted.name]
    others.sort(key=lambda model: (model.in_use, model.last_used))
    if _first_with(missing, [model for model in others if not model.in_use]) is not None:
        return Decision(unload=others[0].name)
    if _asked_at(wanted) is None or wanted.is_running:
        return None
    drained = _first_with(missing, others)
    if drained is not None:
        return Decision(drained=frozenset(model.name for model in drained))
    return None if wanted.is_loaded else Decision(give_up=wanted.name)


def _first_with(size: int, models: Sequence[Resident]) -> Sequence[Resident] | None:
    """As many of them, from the first one on, as have so many bytes; None when all have fewer."""
    total = 0
    for number, model in enumerate(models):
        total += model.size
        if total >= size:
            return models[: number + 1]
    return None
