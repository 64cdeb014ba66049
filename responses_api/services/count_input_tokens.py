"""`POST /responses/input_tokens`: a question to a worker, since only workers know tokenizers."""

import random
from dataclasses import dataclass
from typing import Any

import orjson

from responses_api import bus
from responses_api.bus.relayed_errors import error_from_wire
from responses_api.caller import Caller, cache_scope
from responses_api.errors import Overloaded, RequestTooLarge
from responses_api.ids import new_id
from responses_api.protocol.counting import parse_count
from responses_api.selectors.models import live_fleet, resolve_model

from .check_schemas import check_schemas
from .create_response import conversation_to_continue
from .database_threads import in_database_thread
from .listen import listen
from .open_response import open_previous
from .take_input import take_input
from .touch_store import touch_conversation

ANSWER_SECONDS = 10.0
MAX_BYTES = 8 << 20
"""Of a request: it goes to the worker as one message, and a broker drops whoever is sent more at once than it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a worker needs to count."""

    worker: str
    model: str
    payload: str
    parent: int | None
    project: int
    scope: str


def ask(caller: Caller, payload: Any) -> Question:
    """Check a request and choose a worker. Raises an :class:`ApiError`."""
    size = len(orjson.dumps(payload))
    if size > MAX_BYTES:
        raise RequestTooLarge(
            f"The request has {size} bytes, and at most {MAX_BYTES} can be counted at once. Count it in parts."
        )
    request, payload = take_input(caller=caller, request=parse_count(payload), payload=payload, parse=parse_count)
    check_schemas(request)
    offer = resolve_model(request.model)
    parent = None
    if request.previous_response_id is not None:
        parent = open_previous(caller=caller, response_id=request.previous_response_id).turn_id
    elif request.conversation is not None:
        parent = conversation_to_continue(caller=caller, request=request).turn_id
        touch_conversation(caller=caller, conversation_id=request.conversation)
    workers = [worker for worker, models in live_fleet().workers if offer.name in models]
    if not workers:
        raise Overloaded(f"No worker serves the model '{offer.name}' at the moment. Try again in a few seconds.")
    return Question(
        worker=random.choice(workers),
        model=offer.name,
        payload=orjson.dumps(payload).decode(),
        parent=parent,
        project=caller.project.pk,
        scope=cache_scope(project_id=caller.project.pk, key_id=caller.key.pk if caller.key else None),
    )


async def count_input_tokens(*, caller: Caller, payload: Any) -> int:
    """The tokens that the same create request would report as its ``usage.input_tokens``."""
    question = await in_database_thread(ask, caller, payload)
    reply = bus.response_group(new_id("req_"))
    subscription = await listen(reply)
    try:
        message = {
            "type": "process.count",
            "reply": reply,
            "model": question.model,
            "payload": question.payload,
            "parent": question.parent,
            "project": question.project,
            "scope": question.scope,
        }
        bus.publish(bus.process_group(question.worker), message)
        answer = await subscription.receive(ANSWER_SECONDS)
    finally:
        await subscription.close()
    if answer is None:
        raise Overloaded("No worker answered in time. Try again in a few seconds.")
    if answer["type"] == "count.refused":
        raise error_from_wire(answer["error"])
    tokens: int = answer["tokens"]
    return tokens
