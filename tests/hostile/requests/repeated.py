"""Requests that repeat small elements which expand to much data or cause much work."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.hostile import KIB, MIB, MODEL

from .client import Request
from .corpus import HostileRequest
from .locations import QUESTION, TOOL
from .schema_shapes import GRAMMARS, SCHEMAS
from .stored_ids import StoredIds

CREATE, COUNT, COMPACT = "POST /v1/responses", "POST /v1/responses/input_tokens", "POST /v1/responses/compact"
CHAT = "POST /v1/chat/completions"
ADD = "POST /v1/conversations/{conversation_id}/items"
MAX_ITEMS = 20_000
MAX_TOOLS = 128
SMALL_SIZE = 2 * KIB
NUMBER_MARK = "#"


def repeated_requests(stored_ids: StoredIds) -> Iterator[HostileRequest]:
    """All of these requests. The ids in them exist."""
    for route in (CREATE, COUNT, COMPACT):
        yield from _histories(route, stored_ids)
    for route in (CREATE, COUNT):
        yield from _tools(route)
        yield from _settings(route)
    yield _with_items(ADD, "compaction blobs of 4 MB", [_blob(stored_ids.large_blob)], ends=[], name="items")
    yield from _streamed()
    yield from _chats()


def _histories(route: str, stored_ids: StoredIds) -> Iterator[HostileRequest]:
    reference = {"type": "item_reference", "id": stored_ids.large_item}
    yield _with_items(route, "references to an item of 1 MB", [reference], min_size=SMALL_SIZE, max_size=MIB)
    yield _with_items(
        route, "ids of an item of 1 MB", [{"id": stored_ids.large_item}], min_size=SMALL_SIZE, max_size=MIB
    )
    unknown = {"type": "item_reference", "id": "msg_#"}
    yield _with_items(route, "references to nothing", [unknown], max_size=2 * MIB)
    yield _with_items(route, "compaction blobs", [_blob(stored_ids.blob)])
    yield _with_items(
        route, "compaction blobs of 4 MB", [_blob(stored_ids.large_blob)], min_size=2 * len(stored_ids.large_blob)
    )
    yield _with_items(route, "altered blobs", [_blob(stored_ids.large_blob[:-9] + "AAAAAAAAA")])
    yield _with_items(
        route, "foreign reasoning", [{"type": "reasoning", "summary": [], "encrypted_content": "QUJD" * 64}]
    )
    call = {"type": "function_call", "call_id": "call_#", "name": "look_up", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_#", "output": "a"}
    yield _with_items(route, "calls with outputs", [call, output])
    yield _with_items(route, "calls without outputs", [call])
    yield _with_items(route, "outputs without calls", [output])
    yield _with_items(route, "calls with the same id", [{**call, "call_id": "a"}, {**output, "call_id": "a"}])
    deep = {**call, "arguments": "[" * 900 + "]" * 900}
    yield _with_items(route, "calls with deep arguments", [deep, output])
    for role in ("user", "assistant", "system"):
        yield _with_items(route, f"messages of {role}", [{"role": role, "content": "a"}])
    yield _with_items(route, "turns", [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    yield _with_items(
        route, "turns, truncated", [QUESTION, {"role": "assistant", "content": "b" * 400}], truncation="auto"
    )
    if route == COMPACT:
        for keep in (1, 2**31 - 1):
            yield _with_items(
                route, f"messages, {keep} tokens kept", [{"role": "user", "content": "a"}], keep_tokens=keep
            )
            long = {"role": "user", "content": "word " * 200}
            yield _with_items(route, f"long messages, {keep} tokens kept", [long], keep_tokens=keep)
    if route == CREATE:
        managed = [{"type": "compaction", "compact_threshold": 1000}]
        for content in ("a", "word " * 200):
            message = {"role": "user", "content": content}
            yield _with_items(route, f"messages of {len(content)}, compacted", [message], context_management=managed)


def _tools(route: str) -> Iterator[HostileRequest]:
    for shape in SCHEMAS:

        def many(size: int, write: Callable[[int], bytes] = shape.write) -> bytes:
            schema = write(max(100, size // MAX_TOOLS)).decode()
            tools = ",".join(
                f'{{"type":"function","name":"tool_{number}","parameters":{schema}}}' for number in range(MAX_TOOLS)
            )
            return _body(tools=_Raw(f"[{tools}]"), tool_choice="required")

        yield _request(route, f"128 tools, {shape.name}", many, max_size=MAX_TOOLS * 64 * KIB)
    for shape in GRAMMARS:

        def grammars(size: int, write: Callable[[int], bytes] = shape.write, name: str = shape.name) -> bytes:
            definition = write(max(100, size // MAX_TOOLS)).decode()
            syntax = "lark" if name.startswith("Lark") else "regex"
            form = f'{{"type":"grammar","syntax":"{syntax}","definition":{definition}}}'
            tools = ",".join(f'{{"type":"custom","name":"tool_{n}","format":{form}}}' for n in range(MAX_TOOLS))
            return _body(tools=_Raw(f"[{tools}]"), tool_choice="required")

        yield _request(route, f"128 tools, {shape.name}", grammars, max_size=MAX_TOOLS * 64 * KIB)
    allowed = {"type": "function", "name": "look_up"}
    yield _request(
        route,
        "allowed tools",
        lambda size: _body(
            tools=[TOOL],
            tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [allowed] * (size // 40)},
        ),
    )
    yield _request(route, "hosted tools", lambda size: _body(tools=[{"type": "mcp", "a": "b" * (size // 128)}] * 128))
    one = {"type": "namespace", "name": "a", "description": "", "tools": [TOOL] * 128}
    yield _request(
        route, "namespaces", lambda size: _body(tools=[{**one, "name": f"n{n}"} for n in range(size // 9000 + 1)])
    )


def _settings(route: str) -> Iterator[HostileRequest]:
    if route == COUNT:
        return
    yield _request(route, "biases", lambda size: _body(logit_bias={str(n): 1 for n in range(size // 10)}))
    yield _request(route, "stop strings", lambda size: _body(stop=["a" * (size // 4)] * 4))
    yield _request(route, "metadata", lambda size: _body(metadata={f"k{n}": "a" * 512 for n in range(size // 520)}))
    yield _request(route, "includes", lambda size: _body(include=["reasoning.encrypted_content"] * (size // 31)))
    kinds = {f"a{n}": {"b": "c" * (size_of // 32)} for n, size_of in enumerate([KIB] * 32)}
    yield _request(route, "template arguments", lambda size: _body(chat_template_kwargs={**kinds, "z": "a" * size}))


def _streamed() -> Iterator[HostileRequest]:
    """Create requests that are streamed, run in the background, or are not stored."""
    variants: tuple[dict[str, Any], ...] = (
        {"stream": True},
        {"background": True},
        {"background": True, "stream": True},
        {"store": False},
    )
    for more in variants:
        variant = ", ".join(f"{name} {value}" for name, value in more.items())
        yield _request(CREATE, f"long text, {variant}", partial(_long, "input", more))
        yield _request(CREATE, f"long instructions, {variant}", partial(_long, "instructions", more))
        yield _request(CREATE, f"long answer, {variant}", partial(_long_answer, more), max_size=MIB // 2)
        yield _with_items(CREATE, f"messages, {variant}", [{"role": "user", "content": "a"}], **more)
        call = {"type": "web_search_call", "action": {"query": "a" * 1000}}
        yield _with_items(CREATE, f"hosted calls, {variant}", [call], **more)


def _chats() -> Iterator[HostileRequest]:
    call = {"id": "call_#", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    output = {"role": "tool", "tool_call_id": "call_#", "content": "a"}
    same, its_output = {**call, "id": "a"}, {**output, "tool_call_id": "a"}
    calling = {"role": "assistant", "reasoning_content": "b"}
    for shape, messages in (
        ("messages", [{"role": "user", "content": "a"}]),
        ("messages of many parts", [{"role": "user", "content": [{"type": "text", "text": "a"}] * 100}]),
        ("calls with outputs", [{**calling, "tool_calls": [call]}, output]),
        ("calls without outputs", [{**calling, "tool_calls": [call]}]),
        ("outputs without calls", [output]),
        ("calls of one id", [{**calling, "tool_calls": [same] * 20}, *[its_output] * 20]),
    ):
        yield _with_items(CHAT, shape, messages, name="messages")
    many = [same] * (MAX_ITEMS // 2 - 1)
    message = {**calling, "tool_calls": many}
    yield _request(CHAT, "calls of one id in one message", lambda size: _chat([message, *[its_output] * len(many)]))


def _chat(messages: list[Any]) -> bytes:
    return json.dumps({"model": MODEL, "messages": messages, "max_completion_tokens": 16}).encode()


def _long(name: str, more: dict[str, Any], size: int) -> bytes:
    return _body(**{name: "a" * size}, **more)


def _long_answer(more: dict[str, Any], size: int) -> bytes:
    return _body(input=f"[[tokens: {size // 100}]]", max_output_tokens=size, **more)


class _Raw(str):
    """JSON text that is inserted as it is."""

    __slots__ = ()


def _body(**parameters: Any) -> bytes:
    payload = {"model": MODEL, "input": "And now?", "max_output_tokens": 16, **parameters}
    written = (
        f"{json.dumps(name)}:{value if isinstance(value, _Raw) else json.dumps(value)}"
        for name, value in payload.items()
    )
    return ("{" + ",".join(written) + "}").encode()


def _blob(content: str) -> dict[str, Any]:
    return {"type": "compaction", "encrypted_content": content}


def _with_items(
    route: str,
    shape: str,
    items: list[Any],
    *,
    ends: list[Any] | None = None,
    name: str = "input",
    min_size: int = 64 * KIB,
    max_size: int = 64 * MIB - 64 * KIB,
    **parameters: Any,
) -> HostileRequest:
    """A request with these items, repeated up to its size; `#` in them is replaced by a number."""
    unit = ",".join(json.dumps(item, separators=(",", ":")) for item in items)
    last = [QUESTION] if ends is None else ends

    def body(size: int) -> bytes:
        count = max(1, size // (len(unit) + 1))
        if name in ("input", "messages"):
            count = min(count, (MAX_ITEMS - len(last)) // len(items))
        entries = [unit.replace(NUMBER_MARK, str(n)) for n in range(count)] if NUMBER_MARK in unit else [unit] * count
        inside = _Raw("[" + ",".join([*entries, *map(json.dumps, last)]) + "]")
        if name != "input":
            return f'{{"{name}":{inside}}}'.encode()
        if route == COUNT:
            return _body(**{"input": inside, **parameters}).replace(b'"max_output_tokens":16,', b"")
        return _body(**{"input": inside, **parameters})

    return _request(route, shape, body, min_size=min_size, max_size=max_size, location=name)


def _request(
    route: str,
    shape: str,
    body: Callable[[int], bytes],
    *,
    min_size: int = 64 * KIB,
    max_size: int = 64 * MIB - 64 * KIB,
    location: str = "repeated",
) -> HostileRequest:
    method, path = route.split()

    def make(size: int) -> Request:
        data = body(size)
        if route == COUNT:
            data = data.replace(b'"max_output_tokens":16,', b"").replace(b', "max_output_tokens": 16', b"")
        return Request(method=method, target=path, body=data)

    return HostileRequest(route=route, location=location, shape=shape, make=make, min_size=min_size, max_size=max_size)
