"""`POST /responses/input_tokens`: asks a worker, since only workers load tokenizers."""

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
from responses_api.selectors.models import get_live_workers
from responses_api.services.prompts.assemble_history import Budget

from .check_schemas import check_schemas
from .resolve_request import resolving

ANSWER_SECONDS = 10.0
MAX_BYTES = 8 << 20
"""Most bytes of a request: it is sent to the worker as one message, and a broker disconnects a reader whose output
buffer is exceeded."""
MAX_BYTES_IN_FLIGHT = 2 * MAX_BYTES
"""Most bytes of all requests for which a web process waits for a worker's answer."""

_asked = Budget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a worker needs to count a request, and which worker."""

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
    with resolving(caller=caller, request=request, payload=payload) as resolved:
        model, turn = resolved.served.name, resolved.history.turn
        _, payload = resolved.take_input(refuse=refuse_too_large)
        text = write_json(payload)
    refuse_too_large(len(text))
    workers = [worker for worker, models in get_live_workers().workers if model in models]
    if not workers:
        raise Overloaded(f"No worker serves the model '{model}' at the moment. Try again in a few seconds.")
    return Question(
        worker=random.choice(workers),
        model=model,
        payload=text.decode(),
        parent=None if turn is None else turn.pk,
        scope=caller.scope,
    )


def refuse_too_large(size: int) -> None:
    """Raise :class:`RequestTooLarge` for a request with more bytes than ``MAX_BYTES``, its references included."""
    if size > MAX_BYTES:
        raise RequestTooLarge(
            f"The request has {size} bytes, and at most {MAX_BYTES} can be counted at once. Count it in parts.",
            param="input",
        )


@contextmanager
def asking(question: Question) -> Iterator[None]:
    """Account for a question while it is in flight. Raises :class:`Overloaded` when too many bytes are in flight."""
    size = len(question.payload)
    if not _asked.take(question.scope, size, own=0, limit=MAX_BYTES_IN_FLIGHT):
        raise Overloaded("The server counts as much as it can at once. Try again in a few seconds.")
    try:
        yield
    finally:
        _asked.give_back(question.scope, size)


async def count_input_tokens(*, caller: Caller, payload: Any) -> int:
    """The number that the same create request would report as ``usage.input_tokens``.

    The worker stops counting when the client leaves or the answer takes too long.
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
    """The worker's answer; ``None`` when it doesn't come in time."""
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
