"""The models that live workers serve."""

import time
from dataclasses import dataclass, replace
from datetime import timedelta
from threading import Lock
from typing import Any, Final, get_args

from django.conf import settings
from django.db.models.functions import Now

from responses_api.errors import NO_RETRY, ModelNotFound, Overloaded
from responses_api.models import Process, ServedModel
from responses_api.protocol.objects.model import Model, State, model_object

CACHE_SECONDS = 1.0
OWNER = "mlx-responses"
_STATES: Final[tuple[State, ...]] = get_args(State)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveModel:
    """A model that live workers serve, as they announce it."""

    name: str
    aliases: tuple[str, ...]
    digest: str
    context_length: int
    temperature: float
    top_p: float
    created: int
    weights: str = ""
    source: str = ""
    size_bytes: int = 0
    state: State = "unloaded"
    """How it is on the worker where most of it is ready."""
    memory_bytes: int = 0
    """What it takes of the memory of all workers."""
    is_pinned: bool = False
    """At least one worker never unloads it."""
    refusal: str = ""
    """Why no worker ever loads it; empty if one does."""

    @classmethod
    def from_announcement(cls, value: dict[str, Any]) -> "LiveModel":
        """The model; what a worker of a newer version adds is ignored."""
        known = {name: value[name] for name in cls.__slots__ if name in value}
        return cls(**{**known, "aliases": tuple(value["aliases"])})

    def joined(self, other: "LiveModel") -> "LiveModel":
        """The same model on two workers."""
        first, second = (self, other) if _STATES.index(self.state) >= _STATES.index(other.state) else (other, self)
        return replace(
            first,
            memory_bytes=first.memory_bytes + second.memory_bytes,
            is_pinned=first.is_pinned or second.is_pinned,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorkers:
    """All live workers together."""

    models: tuple[LiveModel, ...]
    slots: int
    too_large: tuple[LiveModel, ...] = ()
    """The models that no worker has the memory for."""
    workers: tuple[tuple[str, frozenset[str]], ...] = ()
    """Each worker's process id with the names of the models that it serves."""

    def find(self, name: str) -> LiveModel | None:
        """The model called ``name``, by its own name first, then by alias."""
        models = (*self.models, *self.too_large)
        named = (model for model in models if model.name == name)
        return next(named, None) or next((model for model in models if name in model.aliases), None)


_lock = Lock()
_cached: tuple[float, LiveWorkers] | None = None


def get_live_workers() -> LiveWorkers:
    """The live workers and their models, cached for a second, since every request needs them."""
    global _cached
    with _lock:
        if _cached is not None and time.monotonic() - _cached[0] < CACHE_SECONDS:
            return _cached[1]
    live = _read_live_workers()
    with _lock:
        _cached = (time.monotonic(), live)
    return live


def forget_live_workers() -> None:
    """Drop the cached value, so that the next call queries the database."""
    global _cached
    with _lock:
        _cached = None


def _read_live_workers() -> LiveWorkers:
    limit = Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS)
    workers = Process.objects.filter(kind=Process.Kind.WORKER, heartbeat_at__gt=limit).values_list(
        "pk", "served_models", "slots"
    )
    models: dict[str, LiveModel] = {}
    slots = 0
    by_worker: list[tuple[str, frozenset[str]]] = []
    for worker, announced, count in workers:
        slots += count
        by_worker.append((worker, frozenset(value["name"] for value in announced if not value.get("refusal"))))
        for value in announced:
            model = LiveModel.from_announcement(value)
            models[model.name] = models[model.name].joined(model) if model.name in models else model
    in_order = [models[name] for name in sorted(models)]
    return LiveWorkers(
        models=tuple(model for model in in_order if not model.refusal),
        too_large=tuple(model for model in in_order if model.refusal),
        slots=slots,
        workers=tuple(by_worker),
    )


def resolve_model(name: str | None) -> LiveModel:
    """The model that a request names, by its name or an alias; the server's default when it names none.

    Raises :class:`ModelNotFound`, or :class:`Overloaded` when the model is known but no live worker has it, or has the
    memory for it.
    """
    wanted = name if name is not None else settings.RESPONSES_DEFAULT_MODEL
    live = get_live_workers()
    model = live.find(wanted)
    if model is None:
        forget_live_workers()
        live = get_live_workers()
        model = live.find(wanted)
    if model is None and name is None and len(live.models) == 1:
        model = live.models[0]
    if model is not None and model.refusal:
        raise Overloaded(model.refusal, headers=NO_RETRY)
    if model is not None:
        return model
    known = ServedModel.objects.filter(name=wanted).exists() or any(
        wanted in aliases for aliases in ServedModel.objects.values_list("aliases", flat=True)
    )
    if known or not live.models:
        raise Overloaded(f"No worker serves the model '{wanted}' at the moment. Try again in a few seconds.")
    raise ModelNotFound.for_name(wanted)


def list_models() -> list[Model]:
    """The catalogue: every name that a request may use, each model followed by its aliases."""
    return [_model(name, model) for model in get_live_workers().models for name in (model.name, *model.aliases)]


def get_model(name: str) -> Model:
    """The catalogue's entry for a name. Raises :class:`ModelNotFound`."""
    model = get_live_workers().find(name)
    if model is None or model.refusal:
        raise ModelNotFound.for_name(name)
    return _model(name, model)


def _model(name: str, model: LiveModel) -> Model:
    return model_object(name, created=model.created, owned_by=OWNER, state=model.state)
