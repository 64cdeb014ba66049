"""Turns with function tools through the SDK, and directives for the scripted model."""

import json
from typing import Any

from tests.live.server import LiveServer

MODEL = "smollm2-135m"
SHOW: Any = {"role": "user", "content": "[[show-prompt]]"}
"""Makes the model show its prompt. With `tool_choice: none`, as calls in it would become calls of the answer."""


def function(name: str, /, **types: str) -> Any:
    """A strict function whose arguments have these types."""
    parameters = {
        "type": "object",
        "properties": {argument: {"type": kind} for argument, kind in types.items()},
        "required": list(types),
        "additionalProperties": False,
    }
    return {"type": "function", "name": name, "parameters": parameters, "strict": True}


def call(name: str, arguments: Any) -> str:
    """The directive for a call."""
    return f"[[call: {name} {json.dumps(arguments)}]]"


def output(made: Any, text: str) -> dict[str, Any]:
    """The output of a call."""
    return {"type": f"{made.type}_output", "call_id": made.call_id, "output": text}


def wire(items: Any) -> list[Any]:
    """Items as on the wire, without the parsed values that the stream helper adds."""
    sent = [item.to_dict() for item in items]
    for item in sent:
        item.pop("parsed_arguments", None)
        for part in item.get("content", ()):
            part.pop("parsed", None)
    return sent


TOOLS = [function("find", name="string"), function("add", left="integer", right="integer")]


def ask(server: LiveServer, streamed: bool, **options: Any) -> Any:
    """One turn, whole or by the stream helper, which checks the events as they come."""
    options = {"model": MODEL, "tools": TOOLS, "max_output_tokens": 2000, **options}
    if not streamed:
        return server.client().responses.create(**options)
    with server.client().responses.stream(**options) as stream:
        return stream.get_final_response()
