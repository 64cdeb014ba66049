"""The object that `/responses/compact` answers with."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from responses_api.protocol.objects.fields import Timestamp
from responses_api.protocol.objects.items import Item
from responses_api.protocol.objects.usage import Usage

COMPACTION_OBJECT = "response.compaction"


class UncountedHistory(TypedDict):
    """A compacted history before its tokens are counted."""

    id: str
    object: Literal["response.compaction"]
    created_at: Timestamp
    model: str
    output: list[Item]


class CompactedHistory(UncountedHistory):
    """A compacted history: instructions and retained items, then the compaction item."""

    usage: Usage


def initial_compaction(id: str, *, created_at: int, model: str) -> UncountedHistory:
    """The answer of `/responses/compact` before anything is compacted. `created_at` is in whole seconds."""
    return {"id": id, "object": "response.compaction", "created_at": created_at, "model": model, "output": []}
