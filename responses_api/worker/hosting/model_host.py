"""The table of a worker's models, and of the requests that use them."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import structlog
from django.conf import settings

from inference import LEAST_TOKENS, Footprint, memory_for_models
from inference.memory import MemoryBudget, ModelMemory
from inference.types import ModelError, Progress, Sink
from responses_api.interruptions import Interrupted

from .catalogue import Catalogue, CatalogueEntry, RegistryCatalogue, ScriptedCatalogue
from .hosted_model import Holder, HostedModel, Phase, Waiter, gone, paused
from .loader import Loader
from .residency import Resident

log = structlog.get_logger(__name__)


class ModelHost:
    """All models of the worker, of which as many are loaded as there is memory for.

    Any thread may call its methods, which don't wait for a model: :meth:`hold` calls back when the model is loaded. No
    model is unloaded while a request holds it.
    """

    def __init__(self, sink: Sink, *, catalogue: Catalogue | None = None, memory: int | None = None) -> None:
        self._sink = sink
        self._catalogue = catalogue or (
            ScriptedCatalogue() if settings.RESPONSES_ENGINE == "scripted" else RegistryCatalogue()
        )
        self.budget = MemoryBudget(memory_for_models(memory or settings.RESPONSES_MEMORY_BYTES))
        self._changed = threading.Condition()
        self._models: dict[str, HostedModel] = {}
        self._loader = Loader(self, self._changed)

    def __iter__(self) -> Iterator[HostedModel]:
        return iter(list(self._models.values()))

    def __getitem__(self, name: str) -> HostedModel:
        """Raises :class:`ModelError` if it no longer exists."""
        try:
            return self._models[name]
        except KeyError:
            raise gone(name) from None

    @property
    def names(self) -> list[str]:
        """The models whose rows may be claimed. While an engine pauses, its rows wait for it or another worker."""
        return [model.name for model in self if model.is_listed and not (model.refusal or model.is_pausing)]

    @property
    def announcements(self) -> list[dict[str, Any]]:
        """What web processes learn about the models."""
        with self._changed:
            return [model.announcement for model in self if model.is_listed]

    # Finding models

    def scan(self) -> bool:
        """Find new models and aliases. Returns whether there were any. Loaded models don't change.

        Only one thread at a time may call it.
        """
        before = self._listed()
        found = {entry.name: entry for entry in self._catalogue.entries()}
        with self._changed:
            for name, model in list(self._models.items()):
                entry = found.pop(name, None)
                # If its files were removed, running requests continue, and no new ones are claimed.
                model.is_listed = entry is not None
                if entry is not None and entry.facts["digest"] == model.facts["digest"]:
                    model.facts = entry.facts
                elif entry is None and model.phase is Phase.UNLOADED and not model.holders:
                    del self._models[name]
        self._add(list(found.values()))
        self._loader.look()
        return self._listed() != before

    def _listed(self) -> list[dict[str, Any]]:
        return [model.facts for model in self if model.is_listed]

    def _add(self, entries: list[CatalogueEntry]) -> None:
        """Add models, pinned ones first in the order of their pins, as their memory is reserved."""
        pins = settings.RESPONSES_MODEL_PINS
        rank = {entry.name: number for number, pin in enumerate(pins) for entry in entries if entry.is_called(pin)}
        for entry in sorted(entries, key=lambda entry: rank.get(entry.name, len(pins))):
            model = self._hosted(entry, is_pinned=entry.name in rank)
            with self._changed:
                self._models[entry.name] = model
            if model.refusal:
                log.warning("worker.model_too_large", model=entry.name, reason=model.refusal)

    def _hosted(self, entry: CatalogueEntry, *, is_pinned: bool) -> HostedModel:
        pinned = sum(model.account.pinned for model in self)
        room = self.budget.total - pinned
        footprint = entry.read_footprint(memory=room)
        context = entry.facts["context_length"]
        tokens, size = footprint.most_tokens(room, context=context), _size(footprint, context)
        account = self.budget.open_account()
        account.pinned = size if is_pinned and tokens else 0
        memory = ModelMemory(account=account, footprint=footprint)
        engine, tokenizer = entry.open(sink=self._sink, memory=memory, most_tokens=tokens)
        return HostedModel(
            facts=entry.facts,
            refusal="" if tokens else too_large(entry.name, size, room, is_shared=pinned > 0),
            footprint=footprint,
            size=size,
            account=account,
            tokenizer=tokenizer,
            engine=engine,
            make_engine=lambda: entry.open(sink=self._sink, memory=memory, most_tokens=tokens)[0],
            is_pinned=is_pinned and tokens > 0,
        )

    # Holding models

    def hold(self, holder: Holder, *, ready: Callable[[], object], failed: Callable[[Exception], object]) -> bool:
        """Keep a model loaded until :meth:`release`. Returns True if it is loaded now.

        Otherwise ``ready`` is called when it is; or ``failed``, with :class:`ModelError` if it can't be loaded, and
        with :class:`Interrupted` after :meth:`withdraw`. Neither of them may block.
        """
        with self._changed:
            model = self._models.get(holder.model)
            error = self._obstacle(holder.model)
            if model is not None and error is None:
                if holder in model.holders or (model.is_running and not model.is_drained):
                    model.holders.add(holder)
                    model.last_used = time.monotonic()
                    return True
                model.waiting[holder] = Waiter(holder, ready, failed)
                self._loader.look()
                return False
        assert error is not None
        failed(error)
        return False

    def _obstacle(self, name: str) -> Exception | None:
        """The reason why a model can't be held, now or later."""
        model = self._models.get(name)
        if model is None:
            return gone(name)
        if self._loader.is_stopping:
            return Interrupted()
        if model.refusal:
            return ModelError(model.refusal)
        return paused(model) if model.is_pausing and not model.is_running else None

    def withdraw(self, holder: Holder) -> bool:
        """End the waiting of a request that is stopped. Returns False if it didn't wait."""
        with self._changed:
            model = self._models.get(holder.model)
            waiter = model.waiting.pop(holder, None) if model is not None else None
        if waiter is None:
            return False
        self._loader.look()
        waiter.failed(Interrupted())
        return True

    def release(self, holder: Holder) -> None:
        """End the use of a model by a request, whether it holds the model or waits for it."""
        with self._changed:
            model = self._models.get(holder.model)
            if model is None:
                return
            model.waiting.pop(holder, None)
            if holder in model.holders:
                model.holders.discard(holder)
                model.last_used = time.monotonic()
            if not model.holders:
                self._loader.look()

    def takes_jobs(self, name: str) -> bool:
        """Whether background jobs of a model can start now, or as soon as it is loaded."""
        with self._changed:
            model = self._models.get(name)
            if model is None or model.refusal or model.is_pausing:
                return False
            if model.phase in (Phase.LOADING, Phase.LOADED):
                return not model.is_drained
            others = [other for other in self if other.is_running and not (other.is_pinned or other.holders)]
            room = self.budget.free + sum(other.account.weights for other in others)
            return model.size <= room and not any(other.waiting for other in self)

    # Loading

    def start(
        self,
        *,
        drain: Callable[[str], object] = lambda name: None,
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        """Start to load and unload models on demand.

        ``drain`` is called with a model that is drained, to preempt its background jobs; ``changed`` at the start and
        the end of each loading and unloading.
        """
        self._loader.start(drain=drain, changed=changed)

    def load_default(self, *, progress: Progress | None = None) -> HostedModel:
        """Load the default model, or another one if it is missing, at the start. Raises :class:`ModelError`."""
        model = self._default()
        if model.refusal:
            raise ModelError(model.refusal)
        self._loader.load(model, progress=progress)
        return model

    def _default(self) -> HostedModel:
        wanted = settings.RESPONSES_DEFAULT_MODEL
        models = list(self)
        for model in models:
            if wanted == model.name or wanted in model.facts["aliases"]:
                return model
        if not models:
            raise ModelError("There is no model to serve. `manage.py models pull` downloads the default one.")
        return models[0]

    def residents(self, now: float) -> list[Resident]:
        """The states of the models for a decision. The caller has the lock."""
        return [model.resident(now) for model in self if not model.refusal]

    def close(self) -> None:
        """Stop all engines, and interrupt the requests that wait for a model."""
        self._loader.stop()
        with self._changed:
            waiting = [waiter for model in self for waiter in model.take_waiting()]
        for waiter in waiting:
            waiter.failed(Interrupted())
        for model in self:
            model.engine.close()


def _size(footprint: Footprint, context: int) -> int:
    return footprint.needs(min(context, LEAST_TOKENS))


def too_large(name: str, size: int, room: int, *, is_shared: bool) -> str:
    """The message for a model that never fits into memory."""
    beside = " beside the models of RESPONSES_MODEL_PINS" if is_shared else ""
    return (
        f"The model '{name}' needs {size / 1e9:.2f} GB of memory, and this server has {room / 1e9:.2f} GB for it"
        f"{beside} (RESPONSES_MEMORY_BYTES). Ask for another model."
    )
