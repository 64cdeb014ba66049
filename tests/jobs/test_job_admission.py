"""Refusals of background jobs, before anything is queued."""

from typing import Any

import pytest

from responses_api.errors import ApiError
from responses_api.models import EventBatch, Response
from responses_api.services.admission.create_response import create_response, new_response_id
from tests.turns import ApiUser

pytestmark = pytest.mark.django_db


def queue(**fields: Any) -> Response:
    payload = {"input": "hello", "background": True, **fields}
    return create_response(
        caller=ApiUser.make().caller,
        public_id=new_response_id(),
        payload=payload,
    )


@pytest.mark.parametrize(
    ("name", "value", "fields", "status", "param"),
    [
        ("BACKGROUND_MAX_JOBS", 0, {}, 400, "background"),
        ("STORE_MAX_ENTRIES", 0, {}, 400, "background"),
        ("STORE_MAX_BYTES", 0, {}, 400, "background"),
        ("BACKGROUND_REQUIRES_STORE", True, {"store": False}, 400, "store"),
        ("BACKGROUND_INPUT_MAX_BYTES", 30, {}, 413, "input"),
        ("STORE_MAX_BYTES", 10, {}, 429, None),
        ("STORE_MAX_BYTES", 10, {"store": False}, 429, None),
        ("ENTRY_MAX_BYTES", 500, {"input": "x" * 500}, 413, "input"),
        ("ENTRY_MAX_BYTES", 500, {"input": "x" * 500, "store": False}, 413, "input"),
        ("BACKGROUND_MAX_JOBS", 2, {}, 429, "background"),
    ],
)
def test_a_limit_refuses_a_job_and_leaves_nothing(
    settings: Any, name: str, value: object, fields: dict[str, Any], status: int, param: str | None
) -> None:
    """With the documented status, and the name of the setting that is the reason."""
    queue()
    queue()
    setattr(settings, f"RESPONSES_{name}", value)
    with pytest.raises(ApiError) as caught:
        queue(**fields)
    assert (caught.value.status, caught.value.param) == (status, param)
    assert f"RESPONSES_{name}" in caught.value.message
    # A job cannot use `store: false`.
    assert ", or send `store: false`" not in caught.value.message
    assert Response.objects.count() == EventBatch.objects.count() == 2


CALL = {"type": "function_call", "call_id": "c9", "name": "look_up", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c9", "output": "18 °C"}


@pytest.mark.parametrize("sent", [[CALL], [OUTPUT], [CALL, OUTPUT, OUTPUT], [{**CALL, "call_id": "c1"}, OUTPUT]])
def test_a_call_without_its_output_is_refused(sent: list[dict[str, Any]]) -> None:
    """So is an output without its call."""
    with pytest.raises(ApiError, match=r"call_id 'c[19]'") as caught:
        queue(input=sent)
    assert (caught.value.status, caught.value.param) == (400, "input")
    assert not Response.objects.exists()
    assert queue(input=[CALL, OUTPUT]).status == "queued"


def test_an_open_call_in_the_history_is_refused_too() -> None:
    """Unless its output comes with the request."""
    call = {**CALL, "id": "fc_1", "status": "completed"}
    previous = ApiUser.make().begin("hello").end(item=call)
    with pytest.raises(ApiError, match="call_id 'c9'"):
        queue(previous_response_id=previous)
    assert queue(previous_response_id=previous, input=[OUTPUT]).status == "queued"


def test_background_and_foreground_queues_are_separate(settings: Any) -> None:
    """And the other way round."""
    settings.RESPONSES_MAX_QUEUE = 1
    for _ in range(12):
        queue()
    assert queue(background=False, stream=True).priority == 0
