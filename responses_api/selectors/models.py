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
class Offer:
    """A served model, as workers announce it."""

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
    def from_announcement(cls, value: dict[str, Any]) -> "Offer":
        return cls(**{**value, "aliases": tuple(value["aliases"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorkers:
    """All live workers together."""

    offers: tuple[Offer, ...]
    slots: int
    workers: tuple[tuple[str, frozenset[str]], ...] = ()
    """Each worker's process id with the names of the models that it serves."""

    def find(self, name: str) -> Offer | None:
        """The model called ``name``, by its own name first, then by alias."""
        for offer in self.offers:
            if offer.name == name:
                return offer
        for offer in self.offers:
            if name in offer.aliases:
                return offer
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
        "pk", "offers", "slots"
    )
    offers: dict[str, Offer] = {}
    slots = 0
    models: list[tuple[str, frozenset[str]]] = []
    for worker, announced, count in workers:
        slots += count
        models.append((worker, frozenset(value["name"] for value in announced)))
        for value in announced:
            offers.setdefault(value["name"], Offer.from_announcement(value))
    return LiveWorkers(offers=tuple(offers[name] for name in sorted(offers)), slots=slots, workers=tuple(models))


def resolve_model(name: str | None) -> Offer:
    """The model that a request names, by its name or an alias; the server's default when it names none.

    Raises :class:`ModelNotFound`, or :class:`Overloaded` when the model is known but no live worker has it.
    """
    wanted = name if name is not None else settings.RESPONSES_DEFAULT_MODEL
    live = get_live_workers()
    offer = live.find(wanted)
    if offer is None:
        forget_live_workers()
        live = get_live_workers()
        offer = live.find(wanted)
    if offer is None and name is None and len(live.offers) == 1:
        offer = live.offers[0]
    if offer is not None:
        return offer
    known = ServedModel.objects.filter(name=wanted).exists() or any(
        wanted in aliases for aliases in ServedModel.objects.values_list("aliases", flat=True)
    )
    if known or not live.offers:
        raise Overloaded(f"No worker serves the model '{wanted}' at the moment. Try again in a few seconds.")
    raise ModelNotFound.for_name(wanted)


def list_models() -> list[Model]:
    """The catalogue: every name that a request may use, each model followed by its aliases."""
    return [_model(name, offer) for offer in get_live_workers().offers for name in (offer.name, *offer.aliases)]


def get_model(name: str) -> Model:
    """The catalogue's entry for a name. Raises :class:`ModelNotFound`."""
    offer = get_live_workers().find(name)
    if offer is None:
        raise ModelNotFound.for_name(name)
    return _model(name, offer)


def _model(name: str, offer: Offer) -> Model:
    return model_object(name, created=offer.created, owned_by=OWNER)
