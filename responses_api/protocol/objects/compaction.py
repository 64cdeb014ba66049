"""The object that `/responses/compact` answers with."""

from __future__ import annotations

from typing import Any

COMPACTION_OBJECT = "response.compaction"


def initial_compaction(id: str, *, created_at: int, model: str) -> dict[str, Any]:
    """The answer of `/responses/compact` before there is one. `created_at` is in whole seconds."""
    return {
        "id": id,
        "object": COMPACTION_OBJECT,
        "created_at": created_at,
        "model": model,
        "output": [],
        "usage": None,
    }
