"""Readers of responses when the bus loses messages or fails: they get the end from the database."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from asgiref.sync import sync_to_async

from responses_api import bus
from responses_api.api.request_scope import BODY, CALLER
from responses_api.bus.memory import ThreadSafeChannelLayer
from responses_api.bus.messages import ReaderMessage, ResponseEvents, ResponseRefused, ResponseResult
from responses_api.bus.relayed_errors import RelayedError
from responses_api.consumers import sse
from responses_api.errors import ApiError, EntryTooLarge, InvalidRequest, Overloaded, ServerError
from responses_api.readers import follow_response
from responses_api.readers.follow_response import Follower, follow
from responses_api.readers.request_body import RequestBody
from responses_api.readers.web_process import web_process
from responses_api.selectors.jobs import JobState
from responses_api.streaming import EncodedEvent
from tests.turns import ApiUser

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("stored", [True, False])
async def test_a_reader_whose_last_message_is_lost_gets_the_stored_response(*, stored: bool) -> None:
    """Or an error if nothing was stored."""
    user = await sync_to_async(ApiUser.make)()
    follower = await follow(await sync_to_async(user.turn)("hello", store=stored))
    follower.observe(JobState.ENDED)
    follower.observe(JobState.ENDED)
    if stored:
        result: Any = await follower.result()
        assert result["output"][0]["content"][0]["text"] == "ok"
        assert follower.ended
    else:
        with pytest.raises(ServerError):
            await follower.result()
    follower.close()


async def test_an_unavailable_broker_is_503() -> None:
    """Before anything is queued; it is not reported as a server error."""
    with (
        patch.object(ThreadSafeChannelLayer, "group_add", side_effect=ConnectionError("refused")),
        pytest.raises(Overloaded),
    ):
        await follow("resp_1")


async def test_a_stream_that_fails_ends_with_a_terminal_event() -> None:
    """Once it is open no HTTP status can: `error`, then `response.failed`, then the end."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def broken(follower: Follower, *, keepalive: float) -> AsyncIterator[list[EncodedEvent]]:
        yield []
        raise RuntimeError("an unexpected error")

    user = await sync_to_async(ApiUser.make)()
    payload: dict[str, Any] = {"input": "hello", "stream": True}
    created = orjson.dumps({"response": {"id": "resp_1", "output": []}}).decode()

    begin = Follower.opened

    async def opened(follower: Follower) -> None:
        events = (("response.created", created), ("response.in_progress", "{}"))
        message = ResponseEvents(attempt=1, worker="worker_1", first=0, events=events)
        bus.publish_to(web_process.id, bus.response_group(follower.public_id), message)
        await begin(follower)

    with (
        patch.object(Follower, "opened", opened),
        patch.object(Follower, "batches", broken),
    ):
        scope = {"type": "http", CALLER: user.caller, BODY: RequestBody(payload)}
        await sse.ResponseStreamConsumer()(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent).decode()
    assert [line for line in text.splitlines() if line.startswith("event: ")] == [
        "event: error",
        "event: response.failed",
    ]
    assert '"sequence_number":3' in text
    assert text.endswith("data: [DONE]\n\n")
    assert not sent[-1]["more_body"]


@pytest.mark.parametrize(
    ("message", "logged"),
    [
        (ResponseRefused(attempt=1, error=RelayedError.of(ServerError("It failed."))), ("refused", "server_error")),
        (ResponseRefused(attempt=1, error=RelayedError.of(InvalidRequest("Send less."))), None),
        (
            ResponseResult(
                attempt=1,
                worker="worker_1",
                event=("response.failed", '{"response": {"error": {"message": "It failed."}}}'),
                error=RelayedError.of(EntryTooLarge("It is too large.")),
                reason="too_large",
            ),
            ("failed", "too_large"),
        ),
    ],
)
async def test_a_server_error_is_logged_once_with_its_request(
    message: ReaderMessage, logged: tuple[str, str] | None
) -> None:
    """With the response's id and a reason, without content. Errors of the caller are not logged."""
    with patch.object(follow_response, "log") as log:
        follower = await follow("resp_1")
        bus.publish_to(web_process.id, bus.response_group("resp_1"), message)
        with pytest.raises(ApiError):
            await follower.result()
        follower.close()
    found = [(call.kwargs["end"], call.kwargs["reason"]) for call in log.error.call_args_list]
    assert found == ([logged] if logged else [])
