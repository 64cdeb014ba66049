"""The whole document: a pure function of the operations and of their types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from responses_api.errors import Error
from responses_api.protocol import objects

from .operations import CHAT_PATH, EVENTS, JSON, OPERATIONS, Operation
from .schemas import Json, Named, component, components, query_parameters

ERRORS: Final = {
    400: "The request is invalid; `param` names the place.",
    401: "The key is missing, wrong, revoked or expired.",
    403: "A browser sent the request for a page of another site, whose origin is not allowed.",
    404: "It is unknown, expired, deleted, or belongs to another project.",
    408: "The body was sent too slowly.",
    409: "It is still running, or its stream is no longer available.",
    410: "The events after the cursor are no longer kept.",
    413: "The body, or the data to be stored, is too large.",
    415: "The body is not sent as JSON, or is compressed.",
    429: "A limit on jobs, readers or bytes is reached; `Retry-After` says when to try again.",
    500: "The server had an error.",
    503: "The server is full, or no worker serves the model; `Retry-After` says when to try again.",
}
SHARED: Final[tuple[Named, ...]] = (objects.Item, objects.OutputItem, objects.Usage)
"""Objects that are parts of several others."""
ANYWHERE: Final = (400, 401, 403, 500, 503)
WITH_BODY: Final = (408, 413, 415, 429)

PATH_PARAMETERS: Final = {
    "response_id": "A response's id.",
    "conversation_id": "A conversation's id.",
    "item_id": "An item's id.",
    "name": "A model's name or alias.",
}

TAGS: Final = {
    "Responses": "Ask a model, and read stored responses.",
    "Chat": "Ask a model as older clients do.",
    "Conversations": "Histories that responses read and add to.",
    "Models": "The models that this server serves.",
    "Server": "The state of the server.",
}


def openapi_document(*, version: str, chat: bool = True) -> Json:
    """The whole document; the same types always give the same document. ``chat``: with Chat Completions."""
    operations = [operation for operation in OPERATIONS if chat or operation.path != CHAT_PATH]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mlx-responses",
            "version": version,
            "description": (
                "OpenAI's Responses API and Chat Completions, with models that run here. Every address under `/v1` is "
                "also served without `/v1`. Every answer has the header `x-request-id`. In requests, null is the same "
                "as absent."
            ),
        },
        "servers": [{"url": "/", "description": "The server that sent this document."}],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "security": [{"bearer": []}, {"apiKey": []}, {}],
        "paths": paths(operations),
        "components": {
            "schemas": components(
                sent={operation.body for operation in operations if operation.body is not None},
                answered={
                    Error,
                    *SHARED,
                    *(operation.answer for operation in operations if operation.answer is not None),
                    *(operation.event for operation in operations if operation.event is not None),
                },
            ),
            "responses": {f"Error{code}": error_answer(about) for code, about in ERRORS.items()},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "As OpenAI's SDKs send it."},
                "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def paths(operations: Iterable[Operation]) -> Json:
    """Operations by path and method."""
    result: Json = {}
    for operation in operations:
        result.setdefault(operation.path, {})[operation.method] = described(operation)
    return result


def described(operation: Operation) -> Json:
    """One operation."""
    result: Json = {"operationId": operation.name, "tags": [operation.tag], "summary": operation.summary}
    if operation.about:
        result["description"] = operation.about
    if operation.is_open:
        result["security"] = []
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PATH_PARAMETERS[name],
            "schema": {"type": "string"},
        }
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    if operation.query is not None:
        parameters += query_parameters(operation.query)
    if parameters:
        result["parameters"] = parameters
    if operation.body:
        content: Json = {JSON: {"schema": component(operation.body)}}
        if operation.event is not None:
            content[JSON]["examples"] = {
                name: {"value": {**(operation.example or {}), "stream": name == "stream"}}
                for name in ("whole", "stream")
            }
        elif operation.example is not None:
            content[JSON]["example"] = operation.example
        result["requestBody"] = {"required": operation.body_required, "content": content}
    result["responses"] = answers(operation)
    return result


def answers(operation: Operation) -> Json:
    """An operation's answers by status."""
    good = component(operation.answer) if operation.answer else {"type": "string"}
    if not operation.answer and operation.answer_as == JSON:
        good = {"type": "object"}
    content: Json = {operation.answer_as: {"schema": good}}
    if operation.event is not None:
        content[EVENTS] = {"schema": event_schema(operation.event)}
    result: Json = {"200": {"description": "Done.", "content": content}}
    if operation.links:
        result["200"]["links"] = {
            name: {"operationId": name, "parameters": {"response_id": "$response.body#/id"}} for name in operation.links
        }
    errors = {400, 500} if operation.is_open else {*ANYWHERE, *operation.errors, *(WITH_BODY if operation.body else ())}
    for code in sorted(errors):
        result[str(code)] = {"$ref": f"#/components/responses/Error{code}"}
    if operation.is_readiness:
        result["503"] = {"description": "Not now; `reason` says why.", "content": {JSON: {"schema": good}}}
    return result


def event_schema(event: Named) -> Json:
    """The schema of one event of a stream, in the form that tools expect, since OpenAPI 3.1 defines none.

    Its field is described by a pattern: some tools would mistake an object with a property `data` for the answer.
    """
    return {
        "type": "object",
        "description": "A server-sent event: `event` is its type, if it has one; `data` a JSON object, or `[DONE]`.",
        "patternProperties": {
            "^data$": {
                "type": "string",
                "anyOf": [
                    {"contentMediaType": JSON, "contentSchema": component(event)},
                    {"const": "[DONE]"},
                ],
            }
        },
    }


def error_answer(about: str) -> Json:
    """An answer that carries the error envelope."""
    return {"description": about, "content": {JSON: {"schema": component(Error)}}}
