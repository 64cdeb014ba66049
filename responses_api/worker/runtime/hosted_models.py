"""The models of this worker, each with an engine that starts with its first request."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings

from inference import (
    DiskOptions,
    MlxOptions,
    ModelEntry,
    Registry,
    ScriptedOptions,
    SpeculationOptions,
    open_model,
)
from inference.types import ChatTokenizer, Engine, EngineLoad, ModelError, Progress, Sink
from responses_api.sealing import prompt_cache_secret

from .restart_backoff import RestartBackoff

log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class HostedModel:
    """A model, its announcement, and its engine. An engine that stops by itself is replaced, after a pause if it has
    failed shortly before.
    """

    announcement: dict[str, Any]
    engine: Engine
    tokenizer: ChatTokenizer
    make_engine: Callable[[], Engine]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _backoff: RestartBackoff = field(default_factory=RestartBackoff)
    _started: bool = False
    _was_loaded: bool = False
    _is_closed: bool = False

    @property
    def name(self) -> str:
        """The model's name, not an alias."""
        return str(self.announcement["name"])

    @property
    def is_running(self) -> bool:
        """Whether the model is loaded and its engine runs."""
        return self._started and self.engine.is_running

    @property
    def is_pausing(self) -> bool:
        """Whether its engine has failed too recently to be started."""
        return self._backoff.remaining > 0

    def ensure_running(self, *, progress: Progress | None = None) -> None:
        """Load the model, unless its engine runs already. Raises :class:`ModelError`, and at once during a pause."""
        with self._lock:
            if self.is_running:
                return
            if self._is_closed:
                raise ModelError(f"The model {self.name} has been unloaded.")
            if self._started:
                self._backoff.note_failure()
                log.error("worker.engine_replaced", model=self.name, pause_seconds=round(self._backoff.remaining, 1))
                self.engine.close()
                self.engine, self._started = self.make_engine(), False
            if self.is_pausing:
                raise ModelError(f"The engine of {self.name} failed, and starts in {self._backoff.remaining:.0f} s.")
            try:
                self.engine.start(progress=progress)
            except ModelError:
                self._backoff.note_failure()
                raise
            self._started = self._was_loaded = True
            self._backoff.note_start()

    def restart_if_stopped(self) -> None:
        """Load the model again if it was loaded and its engine has stopped by itself. Raises :class:`ModelError`."""
        if self._was_loaded and not (self._is_closed or self.is_running or self.is_pausing):
            self.ensure_running()

    def load(self) -> EngineLoad:
        """The load of its engine."""
        return self.engine.load()

    def close(self) -> None:
        """End its engine; live sequences get their last chunk first."""
        with self._lock:
            self._is_closed = True
            self.engine.close()


class ModelHost:
    """All models of the worker. ``scan`` finds models that commands have changed on disk."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._models: dict[str, HostedModel] = {}

    def __iter__(self) -> Iterator[HostedModel]:
        return iter(list(self._models.values()))

    def __getitem__(self, name: str) -> HostedModel:
        return self._models[name]

    def is_running(self, name: str) -> bool:
        """Whether requests for this model need not wait for it to load."""
        model = self._models.get(name)
        return model is not None and model.is_running

    @property
    def names(self) -> list[str]:
        """The names by which rows are claimed: while an engine pauses, its rows wait, or go to another worker."""
        return [model.name for model in self if not model.is_pausing]

    @property
    def announcements(self) -> list[dict[str, Any]]:
        """The announcements of all models."""
        return [model.announcement for model in self]

    def scan(self) -> bool:
        """Update models and aliases from disk; returns whether anything changed. Loaded models stay as they are."""
        before = self.announcements
        if settings.RESPONSES_ENGINE == "scripted":
            if not self._models:
                self._add_scripted()
        else:
            self._scan_registry()
        return self.announcements != before

    def default(self) -> HostedModel:
        """The model to load first: the default one, if it exists. Raises :class:`ModelError` if there is no model."""
        wanted = settings.RESPONSES_DEFAULT_MODEL
        models = list(self)
        for model in models:
            if wanted == model.name or wanted in model.announcement["aliases"]:
                return model
        if not models:
            raise ModelError("There is no model to serve. `manage.py models pull` gets the default one.")
        return models[0]

    def restart_stopped(self) -> None:
        """Start the engines again that have stopped by themselves, without waiting for a request."""
        for model in self:
            try:
                model.restart_if_stopped()
            except ModelError as error:
                log.error("worker.engine_not_restarted", model=model.name, error=str(error))

    def close(self) -> None:
        """End all engines."""
        for model in self:
            model.close()

    def _scan_registry(self) -> None:
        wanted = settings.RESPONSES_MODELS
        found = [
            entry
            for entry in Registry(settings.RESPONSES_DATA_DIR).list_models()
            if not wanted or entry.name in wanted or set(wanted) & set(entry.aliases)
        ]
        for entry in found:
            known = self._models.get(entry.name)
            if known is None:
                self._add(entry)
            elif known.announcement["digest"] == entry.digest:
                known.announcement = announcement_of(entry)
        present = {entry.name for entry in found}
        for name in list(self._models):
            if name not in present:
                # Its files are gone. Running sequences end normally, and no new rows are claimed for it.
                self._models.pop(name).close()

    def _add(self, entry: ModelEntry) -> None:
        options = MlxOptions(
            batch_size=settings.RESPONSES_BATCH_SIZE,
            prefill_step=settings.RESPONSES_PREFILL_STEP,
            prompt_cache_bytes=settings.RESPONSES_PROMPT_CACHE_MAX_BYTES,
            blas_cache=settings.RESPONSES_DATA_DIR / "libraries",
            speculation=speculation_options(),
            disk=disk_options(),
        )
        self._models[entry.name] = self._hosted(entry, announcement_of(entry), options)

    def _add_scripted(self) -> None:
        options = ScriptedOptions(
            batch_size=settings.RESPONSES_BATCH_SIZE, token_seconds=settings.RESPONSES_SCRIPTED_TOKEN_SECONDS
        )
        info = open_model("scripted", sink=self._sink, options=options)[0].info
        announcement = {
            "name": info.name,
            "aliases": [settings.RESPONSES_DEFAULT_MODEL],
            "digest": info.digest,
            "context_length": info.context_length,
            "temperature": info.temperature,
            "top_p": info.top_p,
            "created": 0,
            "weights": "",
            "source": "scripted",
            "size_bytes": 0,
        }
        self._models[info.name] = self._hosted("scripted", announcement, options)

    def _hosted(
        self, model: ModelEntry | str, announcement: dict[str, Any], options: MlxOptions | ScriptedOptions
    ) -> HostedModel:
        def opened() -> tuple[Engine, ChatTokenizer]:
            return open_model(model, sink=self._sink, options=options)

        engine, tokenizer = opened()
        return HostedModel(
            announcement=announcement, engine=engine, tokenizer=tokenizer, make_engine=lambda: opened()[0]
        )


def speculation_options() -> SpeculationOptions | None:
    """The limits that the settings give; None if they turn speculation off."""
    if settings.RESPONSES_SPECULATION == "off":
        return None
    return SpeculationOptions(
        sequences=settings.RESPONSES_SPECULATION_MAX_SEQUENCES,
        draft_tokens=settings.RESPONSES_SPECULATION_MAX_TOKENS,
    )


def disk_options() -> DiskOptions | None:
    """Where prompts are cached on the disk, if they are."""
    if settings.RESPONSES_PROMPT_CACHE_DIR is None:
        return None
    return DiskOptions(
        directory=settings.RESPONSES_PROMPT_CACHE_DIR,
        secret=prompt_cache_secret(settings.SECRET_KEY),
        max_bytes=settings.RESPONSES_PROMPT_CACHE_DIR_MAX_BYTES,
    )


def announcement_of(entry: ModelEntry) -> dict[str, Any]:
    """The announcement of a model of the registry."""
    return {
        "name": entry.name,
        "aliases": list(entry.aliases),
        "digest": entry.digest,
        "context_length": entry.context_length,
        "temperature": entry.temperature,
        "top_p": entry.top_p,
        "created": int(datetime.fromisoformat(entry.added_at).timestamp()),
        "weights": entry.weights,
        "source": entry.source,
        "size_bytes": entry.size_bytes,
    }
