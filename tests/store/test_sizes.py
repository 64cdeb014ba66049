"""Size limits: what is too large is refused or fails, and histories are read within a memory budget."""

from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from responses_api.errors import (
    EntryTooLarge,
    InvalidRequest,
    Overloaded,
    RateLimited,
    RequestTooLarge,
)
from responses_api.models import Item, Response
from responses_api.protocol import parse_list_query
from responses_api.selectors import item_pages
from responses_api.selectors.conversations import list_conversation_items
from responses_api.selectors.history import history_items
from responses_api.selectors.input_items import list_input_items
from responses_api.selectors.responses import get_previous, get_response, wire_response
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.finish_response import Ending, finish_response
from responses_api.services.jobs.leases import Lease
from responses_api.services.prompts.assemble_history import assembling, bytes_in_flight
from tests.totals import recorded_totals, true_totals
from tests.turns import ApiUser, RunningTurn

from .figures import counted, stored
from .people import new_conversation

pytestmark = pytest.mark.django_db

OLDEST_FIRST = parse_list_query([("order", "asc"), ("limit", "100")])


def test_a_response_too_large_from_the_start_is_refused(user: ApiUser, settings: Any) -> None:
    """The history counts, the output is unknown yet; `store: false` has no such limit."""
    first = user.turn("a" * 20_000)
    settings.RESPONSES_ENTRY_MAX_BYTES = 25_000
    second = user.turn("b", previous=first)
    with pytest.raises(EntryTooLarge) as error:
        user.begin("c" * 5_000, previous_response_id=second)
    assert (error.value.status, error.value.code) == (413, "entry_too_large")
    assert counted("refusals") == 1
    user.turn("c" * 5_000, previous=second, store=False)
    user.turn("c" * 5_000)
    conversation_id = new_conversation(user, "d" * 24_000)
    with pytest.raises(EntryTooLarge):
        user.begin("e", conversation=conversation_id)
    instructions = "f" * 15_000
    assert user.turn("g", instructions=instructions) in stored()


def too_large(running: RunningTurn) -> None:
    """End a response with more than can be stored, and then as failed because of that."""
    row = running.row
    lease = Lease(response=row.pk, public_id=row.public_id, worker=row.worker, attempt=row.attempt)
    with pytest.raises(EntryTooLarge):
        running.end("x" * 10_000)
    error = {"code": "server_error", "message": "Too large."}
    failed: Any = {**running.prepared.body, "status": "failed", "error": error, "output": []}
    ending = Ending(response=failed, input_items=running.prepared.input_items, is_too_large=True)
    assert finish_response(lease=lease, ending=ending)


def test_a_response_that_becomes_too_large_is_stored_as_failed(user: ApiUser, settings: Any) -> None:
    """With its input and without output. It cannot be continued, and its conversation gets nothing."""
    settings.RESPONSES_ENTRY_MAX_BYTES = 9_000
    conversation_id = new_conversation(user, "before")
    running = user.begin("go", conversation=conversation_id)
    too_large(running)
    body: Any = wire_response(get_response(caller=user.caller, response_id=running.row.public_id))
    assert (body["status"], body["output"], body["error"]["code"]) == ("failed", [], "server_error")
    with pytest.raises(InvalidRequest, match="failed"):
        get_previous(caller=user.caller, response_id=running.row.public_id)
    page = list_conversation_items(caller=user.caller, conversation_id=conversation_id, query=OLDEST_FIRST)
    assert len(page["data"]) == 1
    row = get_response(caller=user.caller, response_id=running.row.public_id)
    history: list[Any] = [*history_items(row.turn_id)]
    assert [item["content"][0]["text"] for item in history] == ["before", "go"]
    assert Item.objects.count() == 2
    assert counted("refusals") == 1
    assert recorded_totals() == true_totals()


def test_running_jobs_may_not_take_more_than_the_store(user: ApiUser, settings: Any) -> None:
    """429 until some have ended. `store: false` is not refused; a store of zero bytes has no such limit."""
    settings.RESPONSES_STORE_MAX_BYTES = 25_000
    running = [user.begin("a" * 9_000) for _ in range(2)]
    with pytest.raises(RateLimited) as error:
        user.begin("a" * 9_000)
    assert "Retry-After" in error.value.headers
    assert "x-should-retry" not in error.value.headers
    assert counted("refusals") == 1
    user.turn("a" * 9_000, store=False)
    running[0].end()
    user.turn("a" * 9_000)
    with pytest.raises(RateLimited) as error:
        user.begin("a" * 31_000)
    assert error.value.headers["x-should-retry"] == "false"
    settings.RESPONSES_STORE_MAX_BYTES = 0
    user.turn("a" * 31_000)


def test_histories_are_read_within_a_budget(settings: Any) -> None:
    """Memory of others counts; it is released afterwards, even after an error; an empty history needs none."""
    settings.RESPONSES_ASSEMBLY_MAX_BYTES = 1000
    with assembling("a") as first:
        first.add(600)
        with suppress(ZeroDivisionError), assembling("b") as other:
            other.add(400)
            raise ZeroDivisionError
        with assembling("b") as other:
            other.add(0)
            other.add(300)
            with pytest.raises(Overloaded) as error:
                other.add(101)
            assert "x-should-retry" not in error.value.headers
            assert bytes_in_flight() == 900
    assert bytes_in_flight() == 0
    with assembling("a") as first:
        first.add(400)
        with pytest.raises(RequestTooLarge, match="RESPONSES_ASSEMBLY_MAX_BYTES"):
            first.add(601)
        with pytest.raises(RequestTooLarge):
            first.expect(601)
        first.add(600)


def test_one_owner_leaves_room_for_others(settings: Any) -> None:
    """Its concurrent requests share half of the budget; a single one may use all that is free."""
    settings.RESPONSES_ASSEMBLY_MAX_BYTES = 1000
    with assembling("a") as first, assembling("a") as second, assembling("b") as other:
        first.add(300)
        second.add(200)
        with pytest.raises(Overloaded):
            second.add(1)
        other.add(500)


def test_a_list_ends_early_where_its_items_are_large(user: ApiUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """It then says that there is more. No page loads beyond its bytes, and all pages have all items, of a response, a
    running one and a conversation, in both orders.
    """
    monkeypatch.setattr(item_pages, "PAGE_BYTES", 2_500)
    conversation_id = new_conversation(user, *(f"{number} " + "a" * 800 for number in range(5)), "b" * 5_000)
    ended = user.turn("c" * 900, conversation=conversation_id)
    asked = {"input": "go " + "d" * 900, "conversation": conversation_id, "background": True}
    job = create_response(caller=user.caller, public_id=new_response_id(), payload=asked).public_id
    taken: list[int] = []

    def pages(list_items: Any, order: str) -> list[list[str]]:
        found: list[list[str]] = []
        cursor: list[tuple[str, str]] = []
        while True:
            page = list_items(
                query=parse_list_query([("order", order), ("limit", "4"), *cursor]),
                take=taken.append,
            )
            found.append([item["id"] for item in page["data"]])
            if not page["has_more"]:
                return found
            cursor = [("after", page["last_id"])]

    lists: list[tuple[Any, int]] = [
        (partial(list_input_items, Response.objects.get(public_id=ended)), 7),
        (partial(list_input_items, Response.objects.get(public_id=job)), 9),
        (partial(list_conversation_items, caller=user.caller, conversation_id=conversation_id), 8),
    ]
    for list_items, number in lists:
        forwards, backwards = (pages(list_items, order) for order in ("asc", "desc"))
        assert [item for page in forwards for item in page] == [item for page in backwards for item in page][::-1]
        assert len({item for page in forwards for item in page}) == number
        assert len(forwards) > 3
        assert len(forwards[0]) == 2
    assert max(taken) < 5_500
