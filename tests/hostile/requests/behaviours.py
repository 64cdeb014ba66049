"""Clients that disconnect early, read nothing, or send many concurrent requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from tests.hostile import KIB, MIB, MODEL

from .client import Behaviour, Request
from .corpus import HostileRequest
from .stored_ids import StoredIds

CONCURRENT_REQUESTS = 20


def misbehaving_clients(stored_ids: StoredIds) -> Iterator[HostileRequest]:
    """Each behaviour with create and read requests of all kinds."""
    for behaviour in Behaviour:
        if behaviour not in (Behaviour.COMPLETE, Behaviour.READS_NOTHING):
            yield from (replace(request, behaviour=behaviour) for request in _create_requests())
    read_requests = [
        _read_request(stored_ids, "input_items", "?limit=100"),
        _read_request(stored_ids, "input_items", "?limit=100&order=asc"),
    ]
    for request in (*read_requests, *_create_requests()):
        yield replace(request, behaviour=Behaviour.READS_NOTHING)
    for request in read_requests:
        yield replace(request, behaviour=Behaviour.READS_NOTHING, concurrent=CONCURRENT_REQUESTS)
        yield replace(request, behaviour=Behaviour.DISCONNECTS_READING, concurrent=CONCURRENT_REQUESTS)
        yield replace(request, concurrent=4)
    for request in _create_requests():
        yield replace(request, concurrent=CONCURRENT_REQUESTS, max_size=MIB)


def _create_requests() -> list[HostileRequest]:
    """Requests with short answers: many long ones would only be a normal load."""
    return [
        _create_request("long text", "/v1/responses", input="a", max_output_tokens=64, stream=False),
        _create_request("long text as a stream", "/v1/responses", input="a", max_output_tokens=64, stream=True),
        _create_request("long text not stored", "/v1/responses", input="a", max_output_tokens=64, store=False),
        _create_request("long text as a job", "/v1/responses", input="a", max_output_tokens=64, background=True),
        _create_request("long text counted", "/v1/responses/input_tokens", input="a"),
        _create_request("long text compacted", "/v1/responses/compact", input="a"),
        _create_request("long metadata", "/v1/responses", input="a", max_output_tokens=64, metadata={"a": ""}),
    ]


def _create_request(shape: str, path: str, **body: object) -> HostileRequest:
    """A request whose input has the given size."""

    def make(size: int) -> Request:
        payload = {"model": MODEL, **body, "input": "word " * (size // 5)}
        return Request(method="POST", target=path, body=json.dumps(payload).encode())

    return HostileRequest(
        route=f"POST {path}", location="behaviours", shape=shape, make=make, min_size=64 * KIB, max_size=4 * MIB
    )


def _read_request(stored_ids: StoredIds, what: str, query: str) -> HostileRequest:
    """A request for a stored input of 16 MB."""

    def make(size: int) -> Request:
        return Request(method="GET", target=f"/v1/responses/{stored_ids.large_response}/{what}{query}")

    route = f"GET /v1/responses/{{response_id}}/{what}"
    return HostileRequest(
        route=route, location="behaviours", shape=f"16 MB {query}", make=make, min_size=16 * MIB, max_size=16 * MIB
    )
