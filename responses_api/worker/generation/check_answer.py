"""Checks whether a finished answer has the JSON and the calls that its request asked for."""

from collections.abc import Sequence

from django.conf import settings

from responses_api.protocol import CreateResponse
from responses_api.protocol.objects import OutputItem
from responses_api.protocol.schemas.answers import ValidationLimits, answer_error

CALLS = ("function_call", "custom_tool_call")
ANY_OBJECT = {"type": "object"}


def check_answer(output: Sequence[OutputItem], request: CreateResponse) -> str:
    """Why the text or the calls of an answer are not what its request asked for; empty when they are.

    A text is checked if JSON was requested, the arguments of a call if the decoder had to follow their schema.
    """
    limits = ValidationLimits(
        max_nodes=settings.RESPONSES_VALIDATION_MAX_NODES,
        max_depth=settings.RESPONSES_VALIDATION_MAX_DEPTH,
        seconds=settings.RESPONSES_VALIDATION_SECONDS,
    )
    calls = [item for item in output if item["type"] == "function_call"]
    if request.must_call and not any(item["type"] in CALLS for item in output):
        return "No tool was called."
    schemas = {
        (tool.name, tool.namespace): dict(tool.enforced_schema) for tool in request.offered_tools if tool.enforced
    }
    for call in calls:
        schema = schemas.get((call["name"], call.get("namespace")), ANY_OBJECT)
        if error := answer_error(call["arguments"], schema, limits=limits):
            return error
    form = request.text.format.wire()
    texts = [
        "".join(part["text"] for part in item["content"] if part["type"] == "output_text")
        for item in output
        if item["type"] == "message" and item.get("phase") != "commentary"
    ]
    if form["type"] == "text" or not texts:
        return ""
    return answer_error("".join(texts), form.get("schema", ANY_OBJECT), limits=limits)
