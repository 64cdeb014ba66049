"""What background jobs are refused for, before anything is queued."""

from typing import Any

import pytest

from responses_api.errors import ApiError
from responses_api.models import EventBatch, Response
from responses_api.protocol import parse_create
from responses_api.services.create_response import create_response, new_response_id
from tests.turns import Conversationalist

pytestmark = pytest.mark.django_db


def queue(**fields: Any) -> Response:
    payload = {"input": "hello", "background": True, **fields}
    return create_response(
        caller=Conversationalist.make().caller,
        request=parse_create(payload),
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
        ("BACKGROUND_MAX_JOBS", 2, {}, 429, "background"),
    ],
)
def test_a_limit_refuses_a_job_and_leaves_nothing(
    settings: Any, name: str, value: object, fields: dict[str, Any], status: int, param: str | None
) -> None:
    """With the status of the contract, and the setting's name where a setting is the reason."""
    queue()
    queue()
    setattr(settings, f"RESPONSES_{name}", value)
    with pytest.raises(ApiError) as caught:
        queue(**fields)
    assert (caught.value.status, caught.value.param) == (status, param)
    assert f"RESPONSES_{name}" in caught.value.message
    assert Response.objects.count() == EventBatch.objects.count() == 2


def test_background_jobs_take_no_place_in_the_foreground_s_queue(settings: Any) -> None:
    """And the other way round."""
    settings.RESPONSES_MAX_QUEUE = 1
    for _ in range(12):
        queue()
    assert queue(background=False, stream=True).priority == 0
