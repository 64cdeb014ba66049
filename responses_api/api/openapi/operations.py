"""The operations of the API: their bodies, answers and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from responses_api.chat import ChatCompletion, ChatCompletionChunk, CreateChatCompletion
from responses_api.protocol import CreateResponse, ListQuery, RetrieveQuery, objects
from responses_api.protocol.requests.compact import CompactRequest
from responses_api.protocol.requests.conversations import CreateConversation, CreateItems, UpdateConversation
from responses_api.protocol.requests.queries import ItemQuery
from responses_api.protocol.validation.base import WireModel

from .schemas import Named

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
TEXT: Final = "text/plain"
CHAT_PATH: Final = "/v1/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    name: str
    tag: str
    summary: str
    about: str = ""
    body: type[WireModel] | None = None
    body_required: bool = True
    example: dict[str, Any] | None = None
    """A body that every server answers with 200 if the path exists."""
    query: type[WireModel] | None = None
    answer: Named | None = None
    answer_as: str = JSON
    event: Named | None = None
    """The data of an event, where the answer can be a stream."""
    links: tuple[str, ...] = ()
    """Operations that take the `id` of the response in the answer."""
    errors: tuple[int, ...] = ()
    is_open: bool = False
    """Needs no key, and has none of the errors that are common to all others."""
    is_readiness: bool = False
    """Its 503 carries the same object as its 200, not the error envelope."""


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
            "each event's data is a `StreamEvent`."
        ),
        body=CreateResponse,
        example={"input": "Why is the sky blue?", "max_output_tokens": 100},
        answer=objects.Response,
        event=objects.StreamEvent,
        links=("getResponse", "listInputItems", "deleteResponse"),
        errors=(404, 409, 413, 429),
    ),
    Operation(
        method="post",
        path="/v1/responses/input_tokens",
        name="countInputTokens",
        tag="Responses",
        summary="Count a request's input tokens",
        about="The same count as the `usage` of a response to the same request.",
        body=CreateResponse,
        example={"input": "Why is the sky blue?"},
        answer=objects.InputTokens,
        errors=(404, 409, 413),
    ),
    Operation(
        method="post",
        path="/v1/responses/compact",
        name="compactResponse",
        tag="Responses",
        summary="Compact a history",
        about="Returns the retained items, and one encrypted item that replaces the history. Nothing is stored.",
        body=CompactRequest,
        example={"model": "smollm2-135m", "input": "Why is the sky blue?"},
        answer=objects.CompactedHistory,
        errors=(404, 409, 413),
    ),
    Operation(
        method="get",
        path="/v1/responses/{response_id}",
        name="getResponse",
        tag="Responses",
        summary="Retrieve a response",
        about=(
            "Background responses can be retrieved while they run. With `stream=true` the answer is the stream of "
            "events, starting after the event `starting_after`."
        ),
        query=RetrieveQuery,
        answer=objects.Response,
        event=objects.StreamEvent,
        errors=(404, 409, 410, 429),
    ),
    Operation(
        method="delete",
        path="/v1/responses/{response_id}",
        name="deleteResponse",
        tag="Responses",
        summary="Delete a response",
        about="Responses that continue it keep their history.",
        answer=objects.DeletedResponse,
        errors=(404, 409),
    ),
    Operation(
        method="post",
        path="/v1/responses/{response_id}/cancel",
        name="cancelResponse",
        tag="Responses",
        summary="Cancel a background response",
        about="Waits up to five seconds until it has stopped. A response that has ended is returned unchanged.",
        answer=objects.Response,
        errors=(404,),
    ),
    Operation(
        method="get",
        path="/v1/responses/{response_id}/input_items",
        name="listInputItems",
        tag="Responses",
        summary="List a response's input",
        about="The whole history, without the output of the response.",
        query=ListQuery,
        answer=objects.ItemList,
        errors=(404,),
    ),
    Operation(
        method="post",
        path="/v1/conversations",
        name="createConversation",
        tag="Conversations",
        summary="Create a conversation",
        body=CreateConversation,
        example={"items": [{"role": "user", "content": "My name is Ada."}], "metadata": {"topic": "greeting"}},
        body_required=False,
        answer=objects.Conversation,
        errors=(404, 413),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}",
        name="getConversation",
        tag="Conversations",
        summary="Retrieve a conversation",
        answer=objects.Conversation,
        errors=(404,),
    ),
    Operation(
        method="post",
        path="/v1/conversations/{conversation_id}",
        name="updateConversation",
        tag="Conversations",
        summary="Replace a conversation's metadata",
        body=UpdateConversation,
        example={"metadata": {"topic": "weather"}},
        answer=objects.Conversation,
        errors=(404, 413),
    ),
    Operation(
        method="delete",
        path="/v1/conversations/{conversation_id}",
        name="deleteConversation",
        tag="Conversations",
        summary="Delete a conversation",
        about="Its responses stay.",
        answer=objects.DeletedConversation,
        errors=(404,),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}/items",
        name="listConversationItems",
        tag="Conversations",
        summary="List a conversation's items",
        query=ListQuery,
        answer=objects.ItemList,
        errors=(404,),
    ),
    Operation(
        method="post",
        path="/v1/conversations/{conversation_id}/items",
        name="createConversationItems",
        tag="Conversations",
        summary="Add items to a conversation",
        query=ItemQuery,
        body=CreateItems,
        example={"items": [{"role": "user", "content": "What is my name?"}]},
        answer=objects.ItemList,
        errors=(404, 413),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}/items/{item_id}",
        name="getConversationItem",
        tag="Conversations",
        summary="Retrieve an item of a conversation",
        query=ItemQuery,
        answer=objects.Item,
        errors=(404,),
    ),
    Operation(
        method="delete",
        path="/v1/conversations/{conversation_id}/items/{item_id}",
        name="deleteConversationItem",
        tag="Conversations",
        summary="Delete an item of a conversation",
        answer=objects.Conversation,
        errors=(404,),
    ),
    Operation(
        method="post",
        path=CHAT_PATH,
        name="createChatCompletion",
        tag="Chat",
        summary="Create a chat completion",
        about=(
            "For clients that don't use responses: the same models, tools and limits, without stored state. With "
            "`stream: true` the answer is a stream of chunks that ends with `data: [DONE]`; an error within it is "
            "an `Error`."
        ),
        body=CreateChatCompletion,
        example={"messages": [{"role": "user", "content": "Why is the sky blue?"}], "max_completion_tokens": 100},
        answer=ChatCompletion,
        event=ChatCompletionChunk,
        errors=(404, 413, 429),
    ),
    Operation(
        method="get",
        path="/v1/models",
        name="listModels",
        tag="Models",
        summary="List the served models",
        about="Aliases included.",
        answer=objects.ModelList,
    ),
    Operation(
        method="get",
        path="/v1/models/{name}",
        name="getModel",
        tag="Models",
        summary="Retrieve a model",
        answer=objects.Model,
        errors=(404,),
    ),
    Operation(
        method="get",
        path="/v1/status",
        name="getStatus",
        tag="Server",
        summary="Figures of running, waiting and stored responses",
        answer=objects.ServerStatus,
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
        is_open=True,
    ),
    Operation(
        method="get",
        path="/healthz",
        name="getHealth",
        tag="Server",
        summary="Whether the process answers",
        answer=objects.Health,
        is_open=True,
    ),
    Operation(
        method="get",
        path="/readyz",
        name="getReadiness",
        tag="Server",
        summary="Whether the database answers and a worker has a model",
        answer=objects.Health,
        is_open=True,
        is_readiness=True,
    ),
)
