"""The server's state: `/status`, `/healthz` and `/readyz`."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from responses_api.protocol.objects.fields import Count, Timestamp
from responses_api.protocol.objects.model import State


class Health(TypedDict):
    """Whether the process can serve."""

    status: Literal["ok", "unavailable"]
    reason: NotRequired[str]
    models: NotRequired[Count]


class BackgroundFigures(TypedDict):
    """Background jobs, which are also counted in `running` and `waiting`."""

    running: Count
    waiting: Count
    events: Count
    event_bytes: Count
    recovered: Count
    cancelled: Count


class WorkerFigures(TypedDict):
    """A worker process."""

    host: str
    pid: Count
    models: list[str]
    slots: Count
    running: Count
    waiting: Count
    step_seconds: Annotated[float, Field(ge=0)]
    started_at: Timestamp


class ModelFigures(TypedDict):
    """A model."""

    id: str
    aliases: list[str]
    context_length: Count
    state: State
    memory_bytes: Count
    pinned: bool


class SpeculationFigures(TypedDict):
    """Tokens that were guessed and verified, and those of them that the models chose."""

    drafted_tokens: Count
    accepted_tokens: Count


class StoreFigures(TypedDict):
    """The store's figures."""

    entries: Count
    bytes: Count
    hits: Count
    misses: Count
    writes: Count
    evictions: Count
    expiries: Count
    refusals: Count


class CacheTierFigures(TypedDict):
    """One tier of the cache of prompts, over all workers."""

    bytes: Count
    hits: Count
    misses: Count
    tokens: Count
    evictions: Count


class PromptCacheFigures(TypedDict):
    """The cache of prompts, in memory and on disk."""

    memory: CacheTierFigures
    disk: CacheTierFigures


class ServerStatus(TypedDict):
    """Figures of running, waiting and stored responses."""

    object: Literal["server.status"]
    version: str
    uptime_seconds: Annotated[float, Field(ge=0)]
    dialects: list[str]
    running: Count
    waiting: Count
    background: BackgroundFigures
    readers: Count
    web_processes: Count
    assembly_bytes: Count
    workers: list[WorkerFigures]
    models: list[ModelFigures]
    speculation: SpeculationFigures
    prompt_cache: PromptCacheFigures
    store: StoreFigures
