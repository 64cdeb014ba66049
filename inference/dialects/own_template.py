"""How tools, calls and outputs are written for models whose chat template knows none: in Hermes' form."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from inference.dialects.hermes import END, START

_INTRODUCTION = f"""# Tools

You can call these functions, one JSON object a line:
<tools>
%s
</tools>

To call one, answer with its name and its arguments as JSON, between these tags:
{START}
{{"name": "function name", "arguments": {{"parameter": "value"}}}}
{END}
Its result comes between <tool_response> tags. Call only what you need, and answer in words when you know the answer."""


def tools_text(tools: Iterable[Mapping[str, Any]]) -> str:
    """What the system message says of the tools."""
    return _INTRODUCTION % "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)


def call_text(name: str, arguments: str) -> str:
    """A call as the model writes it."""
    return f'{START}\n{{"name": {json.dumps(name)}, "arguments": {arguments}}}\n{END}'


def output_text(output: str) -> str:
    """A call's output as the user says it."""
    return f"<tool_response>\n{output}\n</tool_response>"
