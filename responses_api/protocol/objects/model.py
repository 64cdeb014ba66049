"""The catalogue of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def model_object(name: str, *, created: int, owned_by: str) -> dict[str, Any]:
    """A served model or an alias of one. `created` is in whole seconds."""
    return {"id": name, "object": "model", "created": created, "owned_by": owned_by}


def model_list(models: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The whole catalogue: this list has no pages."""
    return {"object": "list", "data": list(models)}
