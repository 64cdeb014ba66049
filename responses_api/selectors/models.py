"""The models that live workers serve."""

import time
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from typing import Any

from django.conf import settings
from django.db.models.functions import Now

from responses_api.errors import ModelNotFound, Overloaded
from responses_api.models import Process, ServedModel
from responses_api.protocol.objects.model import Model, model_object

CACHE_SECONDS = 1.0
OWNER = "mlx-responses"


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

    @classmethod
    def from_announcement(cls, value: dict[str, Any]) -> "LiveModel":
        return cls(**{**value, "aliases": tuple(value["aliases"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorkers:
    """All live workers together."""

    models: tuple[LiveModel, ...]
    slots: int
    workers: tuple[tuple[str, frozenset[str]], ...] = ()
    """Each worker's process id with the names of the models that it serves."""

    def find(self, name: str) -> LiveModel | None:
        """The model called ``name``, by its own name first, then by alias."""
        for model in self.models:
            if model.name == name:
                return model
        for model in self.models:
            if name in model.aliases:
                return model
        return None


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
        by_worker.append((worker, frozenset(value["name"] for value in announced)))
        for value in announced:
            models.setdefault(value["name"], LiveModel.from_announcement(value))
    return LiveWorkers(models=tuple(models[name] for name in sorted(models)), slots=slots, workers=tuple(by_worker))


def resolve_model(name: str | None) -> LiveModel:
    """The model that a request names, by its name or an alias; the server's default when it names none.

    Raises :class:`ModelNotFound`, or :class:`Overloaded` when the model is known but no live worker has it.
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
    if model is None:
        raise ModelNotFound.for_name(name)
    return _model(name, model)


def _model(name: str, model: LiveModel) -> Model:
    return model_object(name, created=model.created, owned_by=OWNER)
