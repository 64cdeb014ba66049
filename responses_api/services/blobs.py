"""The blobs that this server's clients carry: sealed with its secret, for one project each."""

from functools import cache
from typing import Any

from django.conf import settings

from responses_api.errors import InvalidValue
from responses_api.protocol.compaction import Compacted, Item, Items, expand
from responses_api.sealing import NotSealedHere, Sealer


@cache
def _sealer() -> Sealer:
    return Sealer(settings.SECRET_KEY)


def _owner(project_id: int) -> str:
    return f"project-{project_id}"


def seal_compaction(content: Compacted, *, project_id: int) -> str:
    """The `encrypted_content` of a compaction item."""
    return _sealer().seal(content.encode(), purpose="compaction", owner=_owner(project_id))


def seal_reasoning(text: str, *, project_id: int) -> str:
    """The `encrypted_content` of a reasoning item."""
    return _sealer().seal(text.encode(errors="replace"), purpose="reasoning", owner=_owner(project_id))


def open_reasoning(items: Items, *, project_id: int) -> list[Item]:
    """The items, with the text of those reasoning items that carry it in a blob only. Others' blobs say nothing."""
    return [_opened(item, project_id) if item["type"] == "reasoning" else item for item in items]


def _opened(item: Item, project_id: int) -> Item:
    blob = item.get("encrypted_content")
    if item.get("content") or not blob:
        return item
    try:
        text = _sealer().open(blob, purpose="reasoning", owner=_owner(project_id)).decode()
    except NotSealedHere:
        return item
    return {**item, "content": [{"type": "reasoning_text", "text": text}]}


def expand_history(items: Items, *, project_id: int) -> list[Item]:
    """The history that these items come to, with all blobs opened.

    Raises a 400 when a compaction item among them can't be opened.
    """

    def open_blob(blob: str) -> Compacted:
        try:
            return Compacted.decode(_sealer().open(blob, purpose="compaction", owner=_owner(project_id)))
        except NotSealedHere:
            raise InvalidValue(
                "The history has a compaction item that this server can't open. Begin a new conversation, or send the "
                "items that were compacted.",
                param="input",
            ) from None

    return open_reasoning(expand(items, open_blob), project_id=project_id)


def check_blobs(items: list[dict[str, Any]], *, project_id: int) -> None:
    """Raise a 400 that names the first compaction item of a request that this server has not made for the project."""
    for index, item in enumerate(items):
        if item["type"] != "compaction":
            continue
        try:
            _sealer().open(item["encrypted_content"], purpose="compaction", owner=_owner(project_id))
        except NotSealedHere:
            param = f"input[{index}].encrypted_content"
            raise InvalidValue(
                f"`{param}` was not made by this server for this project, or was altered. Send it as you received it.",
                param=param,
            ) from None
