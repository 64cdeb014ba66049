"""Conversations, without their items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from typing_extensions import TypedDict

from responses_api.protocol.objects.fields import Metadata, Timestamp


class Conversation(TypedDict):
    """A conversation, without its items."""

    id: str
    object: Literal["conversation"]
    created_at: Timestamp
    metadata: Metadata


class DeletedConversation(TypedDict):
    """A deleted conversation."""

    id: str
    object: Literal["conversation.deleted"]
    deleted: Literal[True]


def conversation_object(id: str, *, created_at: int, metadata: Mapping[str, str]) -> Conversation:
    """A conversation. `created_at` is in whole seconds."""
    return {"id": id, "object": "conversation", "created_at": created_at, "metadata": dict(metadata)}


def deleted_conversation(conversation_id: str) -> DeletedConversation:
    """The answer to the deletion of a conversation."""
    return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}
