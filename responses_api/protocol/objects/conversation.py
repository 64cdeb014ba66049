"""A conversation, without its items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def conversation_object(id: str, *, created_at: int, metadata: Mapping[str, str]) -> dict[str, Any]:
    """A conversation. `created_at` is in whole seconds."""
    return {"id": id, "object": "conversation", "created_at": created_at, "metadata": dict(metadata)}


def deleted_conversation(conversation_id: str) -> dict[str, Any]:
    """The answer to DELETE."""
    return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}
