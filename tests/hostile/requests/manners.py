"""Clients that leave in the middle, read nothing, or come many at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from tests.hostile import KIB, MIB, MODEL

from .client import Manner, Request
from .corpus import Hostile
from .known import Known

MANY = 20


def ill_mannered(known: Known) -> Iterator[Hostile]:
    """Each manner with creations and readings of all kinds."""
    for manner in Manner:
        if manner not in (Manner.WHOLE, Manner.READS_NOTHING):
            yield from (replace(one, manner=manner) for one in _creations())
    readings = [
        _reading(known, "input_items", "?limit=100"),
        _reading(known, "input_items", "?limit=100&order=asc"),
    ]
    for one in (*readings, *_creations()):
        yield replace(one, manner=Manner.READS_NOTHING)
    for one in readings:
        yield replace(one, manner=Manner.READS_NOTHING, at_once=MANY)
        yield replace(one, manner=Manner.LEAVES_READING, at_once=MANY)
        yield replace(one, at_once=4)
    for one in _creations():
        yield replace(one, at_once=MANY, largest=MIB)


def _creations() -> list[Hostile]:
    """Their answers are short: many long ones at once are no hostility."""
    return [
        _creation("long text", "/v1/responses", input="a", max_output_tokens=64, stream=False),
        _creation("long text as a stream", "/v1/responses", input="a", max_output_tokens=64, stream=True),
        _creation("long text not stored", "/v1/responses", input="a", max_output_tokens=64, store=False),
        _creation("long text as a job", "/v1/responses", input="a", max_output_tokens=64, background=True),
        _creation("long text counted", "/v1/responses/input_tokens", input="a"),
        _creation("long text compacted", "/v1/responses/compact", input="a"),
        _creation("long metadata", "/v1/responses", input="a", max_output_tokens=64, metadata={"a": ""}),
    ]


def _creation(shape: str, path: str, **body: object) -> Hostile:
    """A body whose input is as long as asked for; what comes back echoes it in words."""

    def make(size: int) -> Request:
        whole = {"model": MODEL, **body, "input": "word " * (size // 5)}
        return Request(method="POST", target=path, body=json.dumps(whole).encode())

    return Hostile(route=f"POST {path}", place="manners", shape=shape, make=make, smallest=64 * KIB, largest=4 * MIB)


def _reading(known: Known, what: str, query: str) -> Hostile:
    """16 MB that were stored."""

    def make(size: int) -> Request:
        return Request(method="GET", target=f"/v1/responses/{known.large_response}/{what}{query}")

    route = f"GET /v1/responses/{{response_id}}/{what}"
    return Hostile(route=route, place="manners", shape=f"16 MB {query}", make=make, smallest=16 * MIB, largest=16 * MIB)
