"""The body of `POST /v1/responses/input_tokens`: what of a create request decides the prompt, and nothing else."""

from __future__ import annotations

from typing import Final

from responses_api.errors import UnknownParameter
from responses_api.protocol.create import CreateResponse, parse_create

COUNTED: Final = frozenset(
    {
        "chat_template_kwargs",
        "conversation",
        "input",
        "instructions",
        "model",
        "parallel_tool_calls",
        "personality",
        "previous_response_id",
        "reasoning",
        "text",
        "tool_choice",
        "tools",
        "truncation",
    }
)


def parse_count(payload: object) -> CreateResponse:
    """The same checks as for a create request. Raises an ApiError that names the place."""
    if isinstance(payload, dict):
        for name in payload:
            if name not in COUNTED:
                known = ", ".join(sorted(COUNTED))
                raise UnknownParameter(f"`{name}` is not a parameter of this route; it takes {known}.", param=str(name))
    return parse_create(payload)
