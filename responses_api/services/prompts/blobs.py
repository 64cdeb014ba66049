"""The `encrypted_content` of items, which clients carry: sealed with the server's secret for one owner (`cache_scope`).

Unpacked content takes memory: before it is unpacked, its size is passed to a ``take`` function.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings

from responses_api.errors import InvalidValue
from responses_api.protocol.items.compaction import Compacted, Item, Items, expand, last_compaction
from responses_api.sealing import NotSealedHere, Purpose, Sealed, Sealer

Take = Callable[[int], None]
"""Called with the number of bytes before they are unpacked; raises when there is no room for them."""


@cache
def _sealer() -> Sealer:
    return Sealer(settings.SECRET_KEY, older=settings.SECRET_KEY_FALLBACKS)


def seal_compaction(content: Compacted, *, owner: str) -> str:
    """The `encrypted_content` of a compaction item."""
    return _sealer().seal(content.encode(), purpose="compaction", owner=owner)


def seal_reasoning(text: str, *, owner: str) -> str:
    """The `encrypted_content` of a reasoning item."""
    return _sealer().seal(text.encode(errors="replace"), purpose="reasoning", owner=owner)


def expand_history(items: Items, *, owner: str, take: Take) -> list[Item]:
    """The history that these items stand for, with all blobs opened.

    Raises a 400 when a compaction item can't be opened, and whatever ``take`` raises.
    """

    def open_blob(blob: str) -> Compacted:
        try:
            return Compacted.decode(_content(blob, "compaction", owner, take))
        except NotSealedHere:
            raise InvalidValue(
                "The history has a compaction item that this server can't open. Begin a new conversation, or send the "
                "items that were compacted.",
                param="input",
            ) from None

    return [_opened(item, owner, take) for item in expand(items, open_blob)]


def _opened(item: Item, owner: str, take: Take) -> Item:
    """The item; a reasoning item that has its text only in a blob gets it. Blobs of other servers are ignored."""
    blob = _reasoning_blob(item)
    if blob is None:
        return item
    try:
        text = _content(blob, "reasoning", owner, take).decode()
    except NotSealedHere:
        return item
    return {**item, "content": [{"type": "reasoning_text", "text": text}]}


def _reasoning_blob(item: Item) -> str | None:
    if item["type"] != "reasoning" or item.get("content"):
        return None
    blob: str | None = item.get("encrypted_content")
    return blob or None


def _content(blob: str, purpose: Purpose, owner: str, take: Take) -> bytes:
    sealed = _sealer().check(blob, purpose=purpose, owner=owner)
    size = _size(sealed)
    take(size)
    return sealed.content(limit=size)


def _size(sealed: Sealed) -> int:
    return sealed.size(limit=settings.RESPONSES_ASSEMBLY_MAX_BYTES)


def check_blobs(items: list[dict[str, Any]], *, owner: str, field: str = "input") -> int:
    """The unpacked size, in bytes, of the blobs in a request's items; nothing is unpacked.

    Raises a 400 that names the first compaction item that this server has not made for the owner. ``field`` is the
    parameter that contains the items.
    """
    sealed: dict[int, Sealed] = {}
    for index, item in enumerate(items):
        if item["type"] == "compaction":
            sealed[index] = _own(item["encrypted_content"], owner, f"{field}[{index}].encrypted_content")
    first = last_compaction(items)
    size = _size(sealed[first]) if first is not None else 0
    limit = settings.RESPONSES_ASSEMBLY_MAX_BYTES
    for blob in filter(None, map(_reasoning_blob, items[first or 0 :])):
        if size > limit:
            break
        try:
            size += _size(_sealer().check(blob, purpose="reasoning", owner=owner))
        except NotSealedHere:
            continue
    return size


def _own(blob: str, owner: str, param: str) -> Sealed:
    try:
        return _sealer().check(blob, purpose="compaction", owner=owner)
    except NotSealedHere:
        raise InvalidValue(
            f"`{param}` was not made by this server for this project, or was altered. Send it as you received it.",
            param=param,
        ) from None
