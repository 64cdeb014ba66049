"""Waiting rows, and the messages that their readers get."""

import time
from collections.abc import Callable

from responses_api import bus
from responses_api.bus.messages import Message, ResponseEvents
from responses_api.caller import Caller
from responses_api.models import Response
from responses_api.models.store.response import ACTIVE
from responses_api.services.accounts.authenticate import default_project
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.worker.runtime.worker import GenerationWorker

Sent = list[tuple[str, Message]]
"""All published messages, each with its group."""


def queue(text: str, *, background: bool = False, stream: bool = True, store: bool = True, **options: object) -> str:
    """Make a waiting row. Returns the id of its response."""
    kind = {"background": True} if background else {"stream": stream}
    payload = {"input": text, "store": store, **kind, **options}
    public_id = new_response_id()
    create_response(
        caller=Caller(project=default_project()),
        public_id=public_id,
        payload=payload,
        reader="" if background else "web_1",
    )
    return public_id


def wait_until(condition: Callable[[], object], *, seconds: float = 10) -> None:
    """Wait until ``condition`` holds; fail if it doesn't in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold in time"
        time.sleep(0.01)


def wait_until_none_is_active() -> None:
    wait_until(lambda: not Response.objects.filter(status__in=ACTIVE).exists())


def wait_until_ended(worker: GenerationWorker) -> None:
    """Wait until every row has ended, and the worker owns none."""
    wait_until_none_is_active()
    wait_until(lambda: not worker.table.count())


def last(sent: Sent, public_id: str) -> Message:
    """The last message to the readers of a response."""
    return [message for group, message in sent if group == bus.response_group(public_id)][-1]


def end(sent: Sent, public_id: str) -> str:
    """The type of the last event of a stream that has ended."""
    message = last(sent, public_id)
    assert isinstance(message, ResponseEvents)
    assert message.last
    return message.events[-1][0]
