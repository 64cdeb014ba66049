"""The catalogue of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from typing_extensions import TypedDict

from responses_api.protocol.objects.fields import Timestamp

State = Literal["too_large", "unloaded", "loading", "idle", "active"]
"""How ready a model is to answer: there is no memory for it; the next request loads it; it is being loaded; it is
loaded, and nobody uses it, or somebody does. The last one is the most ready.
"""


class Model(TypedDict):
    """A served model, or another name of one."""

    id: str
    object: Literal["model"]
    created: Timestamp
    owned_by: str
    state: State


class ModelList(TypedDict):
    """All served models."""

    object: Literal["list"]
    data: list[Model]


def model_object(name: str, *, created: int, owned_by: str, state: State) -> Model:
    """A served model or an alias of one. `created` is in whole seconds."""
    return {"id": name, "object": "model", "created": created, "owned_by": owned_by, "state": state}


def model_list(models: Sequence[Model]) -> ModelList:
    """The whole catalogue; it has no pages."""
    return {"object": "list", "data": list(models)}
