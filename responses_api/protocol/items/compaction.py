"""Compacted histories: the content of a compaction item, and the places where a history may be cut. Pure.

A compaction item replaces everything before it, except for the messages of the system and the developer, which stay. It
contains a summary of the older part and the retained part whole, so a client may replay it with or without the retained
items that `/responses/compact` lists beside it: both give the same history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from responses_api.protocol.items.pairing import TOOL_PAIRS

Item = Mapping[str, Any]
Items = Sequence[Item]


@dataclass(frozen=True, slots=True)
class Compacted:
    """The content of a compaction item: a summary, empty when nothing was summarised, and the items after it."""

    summary: str
    items: tuple[Item, ...]

    def encode(self) -> bytes:
        return orjson.dumps({"summary": self.summary, "items": list(self.items)})

    @classmethod
    def decode(cls, content: bytes) -> Compacted:
        value = orjson.loads(content)
        return cls(summary=value["summary"], items=tuple(value["items"]))

    def replacing(self, items: Items) -> list[Item]:
        """The history that replaces ``items``."""
        return [*filter(is_instruction, items), *([summary_item(self.summary)] if self.summary else ()), *self.items]


def summary_item(text: str) -> Item:
    """A summary as an item of a history. It occurs in no request and in no answer."""
    return {"type": "summary", "text": text}


def last_compaction(items: Items) -> int | None:
    """The index of the last compaction item, which replaces everything before it; ``None`` without one."""
    return next((number for number in reversed(range(len(items))) if items[number]["type"] == "compaction"), None)


def expand(items: Items, open_blob: Callable[[str], Compacted]) -> list[Item]:
    """The history that ``items`` give: the last compaction item, if there is one, replaces everything before it."""
    last = last_compaction(items)
    if last is None:
        return list(items)
    return [*open_blob(items[last]["encrypted_content"]).replacing(items[:last]), *items[last + 1 :]]


@dataclass(frozen=True, slots=True)
class Split:
    """A history in three parts: instructions stay, older items are summarised, retained ones stay unchanged."""

    instructions: tuple[Item, ...]
    older: tuple[Item, ...]
    retained: tuple[Item, ...]


def split_history(items: Items, *, fits: Callable[[Items], bool]) -> Split:
    """Cut an expanded history. Retained are the latest user message and as many of the newest whole turns as fit.

    A cut falls before a user's message or after a completed group of calls, so that no call is separated from its
    output. What follows the latest user message is cut only between such groups, as an agent's long turn must be; the
    message itself stays. ``fits`` is called for few suffixes, and rarely for longer ones than are retained.
    """
    rest = [item for item in items if not is_instruction(item)]
    users = [number for number, item in enumerate(rest) if _is_from_user(item)]
    latest = users[-1] if users else len(rest)
    groups = [cut for cut in _ends_of_groups(rest) if cut > latest]
    best = groups[-1] if groups else latest
    cuts = sorted((cut for cut in {*users, *groups} if cut <= best), reverse=True)
    most = _most(len(cuts), lambda number: cuts[number - 1] == len(rest) or fits(rest[cuts[number - 1] :]))
    if most:
        best = cuts[most - 1]
    if best > latest:
        retained, older = [rest[latest], *rest[best:]], [*rest[:latest], *rest[latest + 1 : best]]
    else:
        retained, older = rest[best:], rest[:best]
    return Split(tuple(filter(is_instruction, items)), tuple(older), tuple(retained))


def _most(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to ``limit`` that fits, 0 if none does; all smaller numbers fit, too.

    Found by doubling, then by halving: large numbers, which cost more to try, are tried last.
    """
    low, high = 0, 1
    while high <= limit and fits(high):
        low, high = high, 2 * high
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def _ends_of_groups(items: Items) -> list[int]:
    """The indexes after which all calls so far have their outputs."""
    open_calls: set[tuple[str, str]] = set()
    calls = {output: call for call, output in TOOL_PAIRS.items()}
    ends = []
    for number, item in enumerate(items):
        kind = item["type"]
        if kind in TOOL_PAIRS:
            open_calls.add((kind, item["call_id"]))
        elif kind in calls:
            open_calls.discard((calls[kind], item["call_id"]))
            if not open_calls:
                ends.append(number + 1)
    return ends


def is_instruction(item: Item) -> bool:
    """Whether it is a message of the system or the developer: those survive every compaction."""
    return bool(item["type"] == "message" and item["role"] in ("system", "developer"))


def _is_from_user(item: Item) -> bool:
    return bool(item["type"] == "message" and item["role"] == "user")


def is_summary(item: Item) -> bool:
    """Whether it is a summary within a history, which no list of items shows."""
    return bool(item["type"] == "summary")
