"""Reading stored responses: what is shown, counted and refused."""

from typing import Any

import pytest

from responses_api.counting import STORE_HITS, STORE_MISSES, take_counts
from responses_api.errors import InvalidRequest, NotFound, ResponseInProgress
from responses_api.models import Response
from responses_api.services.jobs.cancel_response import get_cancellable
from responses_api.services.prompts.blobs import expand_history
from responses_api.services.prompts.show_items import ENCRYPTED_REASONING, LOGPROBS, shown_items
from responses_api.services.store.delete_response import delete_response
from responses_api.services.store.open_response import open_previous, open_response
from tests.turns import ApiUser

pytestmark = pytest.mark.django_db


def test_log_probabilities_come_only_when_requested() -> None:
    """Whatever the request that made the response included."""
    entry = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
    part = {"type": "output_text", "text": "a", "annotations": [], "logprobs": [entry]}
    items: list[Any] = [{"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}]
    assert shown_items(items, include=(), owner="a")[0]["content"] == [{**part, "logprobs": []}]
    assert shown_items(items, include=(LOGPROBS,), owner="a") == items


def test_reasoning_is_sealed_when_that_is_asked_for() -> None:
    """Even where the request that made the response did not include it; the blob opens to the same text."""
    thought: Any = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
    }
    assert shown_items([thought], include=(), owner="a") == [thought]
    (sealed,) = shown_items([thought], include=(ENCRYPTED_REASONING,), owner="a")
    assert sealed["content"] == thought["content"]
    assert expand_history([{**sealed, "content": []}], owner="a", take=print)[0]["content"] == thought["content"]


def test_a_running_foreground_response_says_how_it_ends(user: ApiUser) -> None:
    """It is in progress even while it waits. The error advises nothing that would be refused."""
    response_id = user.begin("hello").row.public_id
    for refused in (
        lambda: delete_response(caller=user.caller, response_id=response_id),
        lambda: open_previous(caller=user.caller, response_id=response_id),
    ):
        with pytest.raises(ResponseInProgress, match=r"'in_progress'.*close the connection") as caught:
            refused()
        assert "cancel" not in caught.value.message
    with pytest.raises(InvalidRequest, match="not made in the background"):
        get_cancellable(caller=user.caller, response_id=response_id)
    with pytest.raises(NotFound):
        open_response(caller=user.caller, response_id=response_id)


def test_every_read_counts_as_use_once(user: ApiUser, settings: Any) -> None:
    """Reading and continuing count, looking at a job to cancel it does not."""
    settings.RESPONSES_STORE_MAX_ENTRIES = 10
    response_id = user.turn("hello")
    made = Response.objects.get().used_at
    get_cancellable_refusal(user, response_id)
    assert Response.objects.get().used_at == made
    assert STORE_HITS.name not in take_counts()
    for read in (open_response, open_previous):
        Response.objects.update(used_at=made)
        read(caller=user.caller, response_id=response_id)
        assert Response.objects.get().used_at != made
        assert take_counts()[STORE_HITS.name] == 1
        with pytest.raises(Exception, match="resp_unknown"):
            read(caller=user.caller, response_id="resp_unknown")
        assert take_counts() == {STORE_MISSES.name: 1}


def get_cancellable_refusal(user: ApiUser, response_id: str) -> None:
    with pytest.raises(InvalidRequest):
        get_cancellable(caller=user.caller, response_id=response_id)
