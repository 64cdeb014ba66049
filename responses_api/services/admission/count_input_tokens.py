"""`POST /responses/input_tokens`: a question to a worker, since only workers know tokenizers."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from responses_api import bus
from responses_api.bus.listen import listen
from responses_api.bus.messages import CountRefused, CountTokens, StopCounting, TokensCounted
from responses_api.caller import Caller
from responses_api.database.threads import in_admission_thread
from responses_api.errors import Overloaded, RequestTooLarge
from responses_api.ids import new_id
from responses_api.protocol import parse_create
from responses_api.protocol.json.writer import write_json
from responses_api.selectors.models import live_fleet, resolve_model
from responses_api.services.prompts.assemble_history import Budget, assembling

from .check_schemas import check_schemas
from .find_history import find_history
from .take_input import take_input

ANSWER_SECONDS = 10.0
MAX_BYTES = 8 << 20
"""Of a request: it goes to the worker as one message, and a broker drops whoever is sent more at once than it holds."""
MOST_BYTES_ASKED = 2 * MAX_BYTES
"""Of all the requests that a web process has asked workers about and got no answer yet."""

_asked = Budget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a worker needs to count."""

    worker: str
    model: str
    payload: str
    parent: int | None
    scope: str


def ask(caller: Caller, payload: Any) -> Question:
    """Check a request and choose a worker. Raises an :class:`ApiError`."""
    request = parse_create(payload)
    refuse_too_large(len(write_json(payload)))
    check_schemas(request)
    offer = resolve_model(request.model)
    history = find_history(caller=caller, request=request)
    with assembling(caller.scope) as assembly:
        request, payload = take_input(
            caller=caller,
            request=request,
            payload=payload,
            assembly=assembly,
            history=history.size,
            refuse=refuse_too_large,
        )
        text = write_json(payload)
    refuse_too_large(len(text))
    workers = [worker for worker, models in live_fleet().workers if offer.name in models]
    if not workers:
        raise Overloaded(f"No worker serves the model '{offer.name}' at the moment. Try again in a few seconds.")
    return Question(
        worker=random.choice(workers),
        model=offer.name,
        payload=text.decode(),
        parent=None if history.turn is None else history.turn.pk,
        scope=caller.scope,
    )


def refuse_too_large(size: int) -> None:
    """Raise :class:`RequestTooLarge` for a request that has more bytes, with what its references name."""
    if size > MAX_BYTES:
        raise RequestTooLarge(
            f"The request has {size} bytes, and at most {MAX_BYTES} can be counted at once. Count it in parts.",
            param="input",
        )


@contextmanager
def asking(question: Question) -> Iterator[None]:
    """Count a question among those that are under way. Raises :class:`Overloaded` when they are too large already."""
    size = len(question.payload)
    if not _asked.take(question.scope, size, own=0, limit=MOST_BYTES_ASKED):
        raise Overloaded("The server counts as much as it can at once. Try again in a few seconds.")
    try:
        yield
    finally:
        _asked.give_back(question.scope, size)


async def count_input_tokens(*, caller: Caller, payload: Any) -> int:
    """The tokens that the same create request would report as its ``usage.input_tokens``.

    Whoever leaves, or waits too long, is counted for no longer.
    """
    question = await in_admission_thread(caller.name, ask, caller, payload)
    with asking(question):
        answer = await answered(question)
    match answer:
        case TokensCounted(tokens=tokens):
            return tokens
        case CountRefused(error=refusal):
            raise refusal.as_error()
        case _:
            raise Overloaded("No worker answered in time. Try again in a few seconds.")


async def answered(question: Question) -> bus.Message | bus.Signal | None:
    """What the worker says; ``None`` when it says nothing in time."""
    reply = bus.response_group(new_id("req_"))
    answer = None
    subscription = await listen(reply)
    try:
        message = CountTokens(
            reply=reply,
            model=question.model,
            payload=question.payload,
            parent=question.parent,
            scope=question.scope,
        )
        bus.publish(bus.process_group(question.worker), message)
        answer = await subscription.receive(ANSWER_SECONDS)
        return answer
    finally:
        if answer is None:
            bus.publish(bus.process_group(question.worker), StopCounting(reply=reply))
        await subscription.close()
