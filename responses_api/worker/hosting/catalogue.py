"""The models that a worker may serve: those on its disk, or scripted ones for tests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from django.conf import settings

from inference import (
    DiskOptions,
    Footprint,
    MlxOptions,
    ModelEntry,
    Registry,
    ScriptedOptions,
    SpeculationOptions,
    open_model,
    read_footprint,
)
from inference.memory import NOTHING, ModelMemory
from inference.types import ChatTokenizer, Engine, Sink
from responses_api.sealing import prompt_cache_secret


class Open(Protocol):
    """Makes the engine, not started, and the tokenizer of a model."""

    def __call__(self, *, sink: Sink, memory: ModelMemory, most_tokens: int) -> tuple[Engine, ChatTokenizer]: ...


class ReadFootprint(Protocol):
    """Reads what a model will need of a memory of this many bytes."""

    def __call__(self, *, memory: int) -> Footprint: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """A model that may be served."""

    facts: dict[str, Any]
    """What is announced of it: its name, aliases, digest, context and more."""
    read_footprint: ReadFootprint
    open: Open

    @property
    def name(self) -> str:
        """The model's own name."""
        return str(self.facts["name"])

    def is_called(self, name: str) -> bool:
        """Whether this is its name or an alias."""
        return name == self.name or name in self.facts["aliases"]


class Catalogue(Protocol):
    """Where a worker finds its models."""

    def entries(self) -> Sequence[CatalogueEntry]:
        """All models that there are now."""
        ...


class RegistryCatalogue:
    """The models in the data directory, all of them or those that `RESPONSES_MODELS` names."""

    def entries(self) -> Sequence[CatalogueEntry]:
        wanted = settings.RESPONSES_MODELS
        entries = map(_registered, Registry(settings.RESPONSES_DATA_DIR).list_models())
        return [entry for entry in entries if not wanted or any(map(entry.is_called, wanted))]


def _registered(entry: ModelEntry) -> CatalogueEntry:
    def opened(*, sink: Sink, memory: ModelMemory, most_tokens: int) -> tuple[Engine, ChatTokenizer]:
        options = MlxOptions(
            batch_size=settings.RESPONSES_BATCH_SIZE,
            prefill_step=settings.RESPONSES_PREFILL_STEP,
            prompt_cache_bytes=settings.RESPONSES_PROMPT_CACHE_MAX_BYTES,
            blas_cache=settings.RESPONSES_DATA_DIR / "libraries",
            most_tokens=most_tokens,
            speculation=speculation_options(),
            disk=disk_options(),
            kv_bits=settings.RESPONSES_KV_BITS,
        )
        return open_model(entry, sink=sink, options=options, memory=memory)

    facts = {
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
    read = partial(
        read_footprint,
        entry.path,
        batch_size=settings.RESPONSES_BATCH_SIZE,
        prefill_step=settings.RESPONSES_PREFILL_STEP,
        kv_bits=settings.RESPONSES_KV_BITS,
    )
    return CatalogueEntry(facts=facts, read_footprint=read, open=opened)


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


class ScriptedCatalogue:
    """Scripted models, named by `RESPONSES_MODELS`; the first one has the default model's name as an alias."""

    def __init__(self, *, footprint: Footprint = NOTHING, options: ScriptedOptions | None = None) -> None:
        self._footprint = footprint
        self._options = options or ScriptedOptions(
            batch_size=settings.RESPONSES_BATCH_SIZE,
            token_seconds=settings.RESPONSES_SCRIPTED_TOKEN_SECONDS,
            load_seconds=settings.RESPONSES_SCRIPTED_LOAD_SECONDS,
        )

    def entries(self) -> Sequence[CatalogueEntry]:
        first, *others = settings.RESPONSES_MODELS or ("scripted",)
        default = settings.RESPONSES_DEFAULT_MODEL
        return [self._entry(first, [] if default in (first, *others) else [default]), *map(self._entry, others)]

    def _entry(self, name: str, aliases: Sequence[str] = ()) -> CatalogueEntry:
        def opened(*, sink: Sink, memory: ModelMemory, most_tokens: int) -> tuple[Engine, ChatTokenizer]:
            options = replace(self._options, most_tokens=most_tokens)
            return open_model(name, sink=sink, options=options, memory=memory)

        facts = {
            "name": name,
            "aliases": list(aliases),
            "digest": "scripted-1",
            "context_length": self._options.context_length,
            "temperature": 1.0,
            "top_p": 1.0,
            "created": 0,
            "weights": "",
            "source": "scripted",
            "size_bytes": 0,
        }
        return CatalogueEntry(facts=facts, read_footprint=lambda *, memory: self._footprint, open=opened)
