"""Every property of every body in the OpenAPI document, with a valid body around it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.hostile import MODEL

Json = Any
Build = Callable[[Json], Json]

PLACEHOLDER = "\x00here\x00"
"""Stands for the value to insert."""
QUESTION = {"role": "user", "content": "And now?"}
CALL = {"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": "{}"}
TOOL = {"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {}}}
BODIES: Mapping[str, Json] = {
    "CreateResponse": {"model": MODEL, "input": [QUESTION], "max_output_tokens": 16},
    "CompactRequest": {"model": MODEL, "input": [QUESTION], "max_output_tokens": 16},
    "CreateConversation": {"items": [QUESTION]},
    "UpdateConversation": {"metadata": {}},
    "CreateItems": {"items": [QUESTION]},
    "CreateChatCompletion": {"model": MODEL, "messages": [QUESTION], "max_completion_tokens": 16},
}
"""Bodies that get 200."""
ITEM_LISTS = ("input", "items", "messages")
VALUES: Mapping[str, Json] = {
    "model": MODEL,
    "call_id": "call_1",
    "tool_call_id": "call_1",
    "id": "call_1",
    "name": "look_up",
    "schema": {"type": "object", "properties": {}},
    "parameters": {"type": "object", "properties": {}},
    "definition": 'start: "a"',
    "syntax": "lark",
    "arguments": "{}",
}
"""Valid values of properties whose type is too general."""
CHAT_TOOL = {"type": "function", "function": {"name": "look_up"}}
CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
CHAT_OUTPUT = {"role": "tool", "tool_call_id": "call_1", "content": "a"}
NEEDED: Mapping[tuple[str, str], Json] = {
    ("CreateResponse", "tool_choice"): {"tools": [TOOL]},
    ("CreateChatCompletion", "tool_choice"): {"tools": [CHAT_TOOL]},
    ("CreateChatCompletion", "top_logprobs"): {"logprobs": True},
    ("CreateChatCompletion", "stream_options"): {"stream": True},
    ("CreateChatCompletion", "max_tokens"): {"max_completion_tokens": None},
}
"""What a property needs beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A property, or the entry of an array or a map, in one body.

    ``owner`` is the component of the property; ``template`` is the body with ``PLACEHOLDER`` at the location.
    """

    body: str
    owner: str
    name: str
    path: str
    schema: Json
    template: Json
    valid: Callable[[Json], Json]
    """Returns a small valid value of a schema."""

    def split(self) -> tuple[bytes, bytes]:
        """The text of the body before and after the location."""
        before, after = json.dumps(self.template).split(json.dumps(PLACEHOLDER))
        return before.encode(), after.encode()

    def allows(self, kind: str) -> bool:
        """Whether the schema allows values of this JSON type."""
        return any(variant.get("type") == kind for variant in self.variants)

    def entries(self, schema: Json) -> Iterator[Json]:
        """A valid entry of each kind that an array's schema allows."""
        for variant in alternatives(schema.get("items", {})):
            yield self.valid(variant)

    @property
    def variants(self) -> list[Json]:
        return list(alternatives(self.schema))


def alternatives(schema: Json) -> Iterator[Json]:
    """The alternatives of a schema; references are not resolved."""
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if not branches:
        yield schema
    for branch in branches:
        yield from alternatives(branch)


class Locations:
    """The locations of all bodies in an OpenAPI document."""

    def __init__(self, document: Json) -> None:
        self.components: Mapping[str, Json] = document["components"]["schemas"]

    def of(self, body: str) -> list[Location]:
        """The locations of one body. Each component that it may contain is covered once."""
        visited: set[str] = {body}

        def build(value: Json) -> Json:
            return {**BODIES[body], **value}

        return list(self._properties(body, body, self.components[body], "", build, visited))

    def _properties(
        self, body: str, owner: str, schema: Json, path: str, build: Build, visited: set[str]
    ) -> Iterator[Location]:
        base = {} if owner == body else self.valid(schema)
        for name, inner in schema.get("properties", {}).items():

            def within(value: Json, name: str = name) -> Json:
                return build({**base, **NEEDED.get((owner, name), {}), name: value})

            yield from self._place(body, owner, name, inner, f"{path}.{name}".lstrip("."), within, visited)

    def _place(
        self, body: str, owner: str, name: str, schema: Json, path: str, build: Build, visited: set[str]
    ) -> Iterator[Location]:
        yield Location(
            body=body, owner=owner, name=name, path=path, schema=schema, template=build(PLACEHOLDER), valid=self.valid
        )
        for variant in alternatives(schema):
            yield from self._inside(body, owner, name, variant, path, build, visited)

    def _inside(
        self, body: str, owner: str, name: str, schema: Json, path: str, build: Build, visited: set[str]
    ) -> Iterator[Location]:
        if "$ref" in schema:
            component = schema["$ref"].rpartition("/")[2]
            if component not in visited:
                visited.add(component)
                yield from self._properties(body, component, self.components[component], path, build, visited)
        elif schema.get("type") == "array":
            for variant in alternatives(schema["items"]):
                component = variant.get("$ref", "").rpartition("/")[2]

                def entry(value: Json, component: str = component) -> Json:
                    return build(with_companions(component, value) if path in ITEM_LISTS else [value])

                if component:
                    yield from self._inside(body, owner, name, variant, f"{path}[]", entry, visited)
                else:
                    yield from self._place(body, owner, f"{name}[]", variant, f"{path}[]", entry, visited)
        elif "properties" in schema:
            yield from self._properties(body, f"{owner}.{name}", schema, path, build, visited)
        elif schema.get("type") == "object":
            more = schema.get("additionalProperties")
            value = more if isinstance(more, dict) else {}
            yield from self._place(body, owner, f"{name}{{}}", value, f"{path}{{}}", lambda v: build({"a": v}), visited)

    def valid(self, schema: Json, name: str = "") -> Json:
        """A small value that the schema allows."""
        if name in VALUES:
            return VALUES[name]
        schema = next(iter(alternatives(schema)))
        if "$ref" in schema:
            return self.valid(self.components[schema["$ref"].rpartition("/")[2]])
        for keyword in ("const", "enum"):
            if keyword in schema:
                return schema[keyword] if keyword == "const" else schema[keyword][0]
        match schema.get("type"):
            case "object":
                required = schema.get("required", ())
                return {name: self.valid(schema["properties"][name], name) for name in required}
            case "array":
                return []
            case "integer" | "number":
                return schema.get("minimum", 0)
            case "boolean":
                return False
            case "null":
                return None
            case _:
                return "a"


def with_companions(component: str, item: Json) -> list[Json]:
    """An item with the other items that it needs, and a question at the end."""
    match component:
        case "FunctionCall":
            return [item, {"type": "function_call_output", "call_id": "call_1", "output": "a"}, QUESTION]
        case "FunctionCallOutput":
            return [CALL, item, QUESTION]
        case "CustomToolCall":
            return [item, {"type": "custom_tool_call_output", "call_id": "call_1", "output": "a"}, QUESTION]
        case "CustomToolCallOutput":
            return [{"type": "custom_tool_call", "call_id": "call_1", "name": "look_up", "input": "a"}, item, QUESTION]
        case "ChatAssistantMessage":
            outputs = [CHAT_OUTPUT] if isinstance(item.get("tool_calls"), list) and item["tool_calls"] else []
            return [item, *outputs, QUESTION]
        case "ChatToolMessage":
            return [{"role": "assistant", "tool_calls": [CHAT_CALL]}, item, QUESTION]
        case "CompactionTrigger":
            return [QUESTION, item]
        case _:
            return [item, QUESTION]
