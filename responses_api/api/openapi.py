"""The API as an OpenAPI 3.1 document: a pure function of the protocol's types, and the view that serves it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.conf import settings
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.response import Response

from responses_api.protocol import ListQuery, RetrieveQuery
from responses_api.protocol.requests.queries import ItemQuery

from .endpoint import Endpoint
from .openapi_schemas import Json, component, query_parameters, schemas

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
TEXT: Final = "text/plain"

FAULTS: Final = {
    400: "The request is at fault; `param` names the place.",
    401: "No key, or one that is wrong, revoked or expired.",
    403: "A browser asks for a page of another site, and this server is open to this machine alone.",
    404: "Unknown, expired, deleted, or another project's.",
    408: "The body came too slowly.",
    409: "It is still running, or has no stream any more.",
    410: "The events after the cursor are kept no longer.",
    413: "The body, or what would be stored, is too large.",
    415: "The body is not sent as JSON, or is compressed.",
    429: "As many jobs run, readers read, or bytes are sent, as may; `Retry-After` says when to try again.",
    500: "A fault of the server's.",
    503: "The server is full, or no worker serves the model; `Retry-After` says when to try again.",
}
# Of one event: what OpenAPI 3.1 leaves open, its tools read so. With properties, some would take it for a response.
EVENT: Final = {
    "type": "object",
    "description": "A server-sent event: `event` is its type, `data` a JSON object as text, or `[DONE]` at the end.",
}
ANYWHERE: Final = (400, 401, 403, 500, 503)
WITH_BODY: Final = (408, 413, 415, 429)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    name: str
    tag: str
    summary: str
    about: str = ""
    body: str = ""
    body_required: bool = True
    example: Json | None = None
    """A body that is answered with 200 wherever the path exists."""
    query: type[BaseModel] | None = None
    answer: str = ""
    answer_as: str = JSON
    streams: bool = False
    links: tuple[str, ...] = ()
    """Operations that take the `id` of a response that is answered."""
    faults: tuple[int, ...] = ()
    open: bool = False
    """Needs no key, and has none of the faults that may happen anywhere."""
    unready: bool = False
    """Its 503 carries its own object, not the envelope."""


OPERATIONS: Final = (
    Operation(
        method="post",
        path="/v1/responses",
        name="createResponse",
        tag="Responses",
        summary="Create a response",
        about=(
            "Send `input`, or continue a stored response by `previous_response_id` or a `conversation`. "
            "With `stream: true` the answer is a stream of server-sent events that ends with `data: [DONE]`; "
            "each event's data is a JSON object with its `type` and `sequence_number`."
        ),
        body="CreateResponse",
        example={"input": "Why is the sky blue?", "max_output_tokens": 100},
        answer="Response",
        streams=True,
        links=("getResponse", "listInputItems", "deleteResponse"),
        faults=(404, 409, 413, 429),
    ),
    Operation(
        method="post",
        path="/v1/responses/input_tokens",
        name="countInputTokens",
        tag="Responses",
        summary="Count a request's input tokens",
        about="The same count as the `usage` of a response to the same request.",
        body="CreateResponse",
        example={"input": "Why is the sky blue?"},
        answer="InputTokens",
        faults=(404, 409, 413),
    ),
    Operation(
        method="post",
        path="/v1/responses/compact",
        name="compactResponse",
        tag="Responses",
        summary="Compact a history",
        about="What stays of the history, and one encrypted item that stands for all of it. Nothing is stored.",
        body="CompactRequest",
        example={"model": "smollm2-135m", "input": "Why is the sky blue?"},
        answer="CompactedHistory",
        faults=(404, 409, 413),
    ),
    Operation(
        method="get",
        path="/v1/responses/{response_id}",
        name="getResponse",
        tag="Responses",
        summary="Retrieve a response",
        about=(
            "A background response also while it runs. With `stream=true` the answer is its stream of events, from the "
            "one after `starting_after` on."
        ),
        query=RetrieveQuery,
        answer="Response",
        streams=True,
        faults=(404, 409, 410, 429),
    ),
    Operation(
        method="delete",
        path="/v1/responses/{response_id}",
        name="deleteResponse",
        tag="Responses",
        summary="Delete a response",
        about="Responses that continue it stay whole.",
        answer="DeletedResponse",
        faults=(404, 409),
    ),
    Operation(
        method="post",
        path="/v1/responses/{response_id}/cancel",
        name="cancelResponse",
        tag="Responses",
        summary="Cancel a background response",
        about="Waits up to five seconds until nothing works on it any more. One that has ended is answered as it is.",
        answer="Response",
        faults=(404,),
    ),
    Operation(
        method="get",
        path="/v1/responses/{response_id}/input_items",
        name="listInputItems",
        tag="Responses",
        summary="List a response's input",
        about="The whole history that went in, without the response's own output.",
        query=ListQuery,
        answer="ItemList",
        faults=(404,),
    ),
    Operation(
        method="post",
        path="/v1/conversations",
        name="createConversation",
        tag="Conversations",
        summary="Create a conversation",
        body="CreateConversation",
        example={"items": [{"role": "user", "content": "My name is Ada."}], "metadata": {"topic": "greeting"}},
        body_required=False,
        answer="Conversation",
        faults=(404, 413),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}",
        name="getConversation",
        tag="Conversations",
        summary="Retrieve a conversation",
        answer="Conversation",
        faults=(404,),
    ),
    Operation(
        method="post",
        path="/v1/conversations/{conversation_id}",
        name="updateConversation",
        tag="Conversations",
        summary="Replace a conversation's metadata",
        body="UpdateConversation",
        example={"metadata": {"topic": "weather"}},
        answer="Conversation",
        faults=(404, 413),
    ),
    Operation(
        method="delete",
        path="/v1/conversations/{conversation_id}",
        name="deleteConversation",
        tag="Conversations",
        summary="Delete a conversation",
        about="Responses that were its turns stay.",
        answer="DeletedConversation",
        faults=(404,),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}/items",
        name="listConversationItems",
        tag="Conversations",
        summary="List a conversation's items",
        query=ListQuery,
        answer="ItemList",
        faults=(404,),
    ),
    Operation(
        method="post",
        path="/v1/conversations/{conversation_id}/items",
        name="createConversationItems",
        tag="Conversations",
        summary="Add items to a conversation",
        query=ItemQuery,
        body="CreateItems",
        example={"items": [{"role": "user", "content": "What is my name?"}]},
        answer="ItemList",
        faults=(404, 413),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}/items/{item_id}",
        name="getConversationItem",
        tag="Conversations",
        summary="Retrieve an item of a conversation",
        query=ItemQuery,
        answer="Item",
        faults=(404,),
    ),
    Operation(
        method="delete",
        path="/v1/conversations/{conversation_id}/items/{item_id}",
        name="deleteConversationItem",
        tag="Conversations",
        summary="Delete an item of a conversation",
        answer="Conversation",
        faults=(404,),
    ),
    Operation(
        method="get",
        path="/v1/models",
        name="listModels",
        tag="Models",
        summary="List the models that are served",
        about="Aliases included.",
        answer="ModelList",
    ),
    Operation(
        method="get",
        path="/v1/models/{name}",
        name="getModel",
        tag="Models",
        summary="Retrieve a model",
        answer="Model",
        faults=(404,),
    ),
    Operation(
        method="get",
        path="/v1/status",
        name="getStatus",
        tag="Server",
        summary="What runs, waits and is stored",
        answer="ServerStatus",
    ),
    Operation(
        method="get",
        path="/v1/metrics",
        name="getMetrics",
        tag="Server",
        summary="The same for Prometheus",
        about="Text format 0.0.4.",
        answer_as=TEXT,
    ),
    Operation(
        method="get",
        path="/v1/openapi.json",
        name="getOpenApi",
        tag="Server",
        summary="This document",
        open=True,
    ),
    Operation(
        method="get",
        path="/healthz",
        name="getHealth",
        tag="Server",
        summary="Whether the process answers",
        answer="Health",
        open=True,
    ),
    Operation(
        method="get",
        path="/readyz",
        name="getReadiness",
        tag="Server",
        summary="Whether the database and a worker are there",
        answer="Health",
        open=True,
        unready=True,
    ),
)

PATH_PARAMETERS: Final = {
    "response_id": "A response's id.",
    "conversation_id": "A conversation's id.",
    "item_id": "An item's id.",
    "name": "A model's name or alias.",
}

TAGS: Final = {
    "Responses": "Ask a model, and read what was stored.",
    "Conversations": "Histories that responses read and add to.",
    "Models": "What this server serves.",
    "Server": "How the server does.",
}


def openapi_document(*, version: str) -> Json:
    """The whole document. The same types give the same document, key for key."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mlx-responses",
            "version": version,
            "description": (
                "OpenAI's Responses API, with models that run here. Every address under `/v1` is also served without "
                "`/v1`. Every answer has the header `x-request-id`. In requests, null is the same as absent."
            ),
        },
        "servers": [{"url": "/", "description": "The server that sent this document."}],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "security": [{"bearer": []}, {"apiKey": []}, {}],
        "paths": paths(OPERATIONS),
        "components": {
            "schemas": schemas(),
            "responses": {f"Fault{code}": fault(about) for code, about in FAULTS.items()},
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
    if operation.open:
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
        if operation.streams:
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
    """An operation's documented statuses."""
    good = component(operation.answer) if operation.answer else {"type": "string"}
    if not operation.answer and operation.answer_as == JSON:
        good = {"type": "object"}
    content: Json = {operation.answer_as: {"schema": good}}
    if operation.streams:
        content[EVENTS] = {"schema": EVENT}
    result: Json = {"200": {"description": "Done.", "content": content}}
    if operation.links:
        result["200"]["links"] = {
            name: {"operationId": name, "parameters": {"response_id": "$response.body#/id"}} for name in operation.links
        }
    faults = {400, 500} if operation.open else {*ANYWHERE, *operation.faults, *(WITH_BODY if operation.body else ())}
    for code in sorted(faults):
        result[str(code)] = {"$ref": f"#/components/responses/Fault{code}"}
    if operation.unready:
        result["503"] = {"description": "Not now; `reason` says why.", "content": {JSON: {"schema": good}}}
    return result


def fault(about: str) -> Json:
    """An answer that carries the error envelope."""
    return {"description": about, "content": {JSON: {"schema": component("Error")}}}


@cache
def served_document() -> dict[str, Any]:
    """This server's document, built when first asked for."""
    return openapi_document(version=settings.RESPONSES_VERSION)


class OpenApiView(Endpoint):
    """``GET /openapi.json``: how to ask is told to everyone."""

    authentication_classes: list = []
    permission_classes: list = []

    def get(self, request: Request) -> Response:
        return Response(served_document())
