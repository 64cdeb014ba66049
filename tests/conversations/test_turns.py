"""Responses in a conversation: what they read, and what they add to it when they end."""

from datetime import timedelta
from sqlite3 import SQLITE_LIMIT_VARIABLE_NUMBER
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from responses_api.errors import ApiError, MissingParameter, NotFound
from responses_api.models import Conversation, Item, Response, Turn, UsageRecord
from responses_api.protocol import parse_list_query
from responses_api.protocol.requests.conversations import parse_create_conversation
from responses_api.selectors.batches import BATCH
from responses_api.selectors.conversations import list_conversation_items
from responses_api.selectors.history import used_ids
from responses_api.selectors.input_items import list_input_items
from responses_api.selectors.items import find_items
from responses_api.selectors.responses import get_response, wire_response
from responses_api.services.jobs.cancel_response import abandon_response
from responses_api.services.jobs.recover_jobs import recover_jobs
from responses_api.services.processes.expire_responses import expire_conversations
from responses_api.services.store.create_conversation import create_conversation
from responses_api.services.store.delete_conversation import delete_conversation
from responses_api.services.store.delete_response import delete_response
from responses_api.services.store.edit_conversation_items import delete_conversation_item
from tests.turns import ApiUser

pytestmark = pytest.mark.django_db


def create(user: ApiUser, *texts: str) -> str:
    """The id of a create conversation with these messages."""
    body = {"items": [{"role": "user", "content": text} for text in texts]}
    return create_conversation(caller=user.caller, request=parse_create_conversation(body)).public_id


OLDEST_FIRST = parse_list_query([("order", "asc"), ("limit", "100")])


def items(user: ApiUser, conversation_id: str) -> list[dict[str, Any]]:
    """The conversation's items, oldest first."""
    found: Any = list_conversation_items(caller=user.caller, conversation_id=conversation_id, query=OLDEST_FIRST)
    return list(found["data"])


def texts(listed: list[dict[str, Any]]) -> list[str]:
    return [item["content"][0]["text"] for item in listed]


def stored_texts() -> set[str]:
    """The texts of all stored items."""
    stored: list[Any] = [item.wire() for item in Item.objects.all()]
    return set(texts(stored))


def inputs(user: ApiUser, response_id: str) -> list[str]:
    """The input texts of a response."""
    found: Any = list_input_items(get_response(caller=user.caller, response_id=response_id), query=OLDEST_FIRST)
    return texts(found["data"])


def test_a_turn_reads_the_conversation_and_is_added_to_it(user: ApiUser) -> None:
    """By both forms of the parameter. The response echoes the id; items have the ids that the response shows."""
    conversation_id = create(user, "before")
    first = user.turn("one", conversation=conversation_id)
    second = user.turn("two", conversation={"id": conversation_id})
    assert inputs(user, second) == ["before", "one", "ok", "two"]
    found = items(user, conversation_id)
    assert texts(found) == ["before", "one", "ok", "two", "ok"]
    body = wire_response(get_response(caller=user.caller, response_id=second))
    assert body["conversation"] == {"id": conversation_id}
    assert body["output"][0] == found[-1]
    assert Item.objects.count() == 5
    assert Turn.objects.count() == 3
    assert inputs(user, user.turn("aside", previous=first)) == ["before", "one", "ok", "aside"]


def test_concurrent_turns_are_added_in_the_order_in_which_they_end(user: ApiUser) -> None:
    """Both complete, by reference to the same items; each response keeps the history that it read."""
    conversation_id = create(user, "before")
    early, late = (user.begin(text, conversation=conversation_id) for text in ("early", "late"))
    second = late.end("late answer")
    first = early.end("early answer")
    found = items(user, conversation_id)
    assert texts(found) == ["before", "late", "late answer", "early", "early answer"]
    assert inputs(user, first) == ["before", "early"]
    assert inputs(user, second) == ["before", "late"]
    assert Item.objects.count() == 5
    for response_id in (first, second):
        delete_response(caller=user.caller, response_id=response_id)
    assert items(user, conversation_id) == found
    delete_conversation(caller=user.caller, conversation_id=conversation_id)
    assert not Item.objects.exists()
    assert not Turn.objects.exists()


@pytest.mark.parametrize("store", [True, False])
def test_ids_stay_unique_when_two_turns_bring_the_same(user: ApiUser, store: bool) -> None:
    """The later turn's item gets another id in the conversation, and keeps its own in the response."""
    conversation_id = create(user)
    message = [{"role": "user", "content": "same", "id": "msg_mine"}]
    turns = [user.begin(message, conversation=conversation_id, store=store) for _ in range(2)]
    ended = [turn.end() for turn in turns]
    found = items(user, conversation_id)
    assert texts(found) == ["same", "ok", "same", "ok"]
    ids = [item["id"] for item in found]
    assert len(set(ids)) == 4
    assert ids[0] == "msg_mine"
    if store:
        page = list_input_items(get_response(caller=user.caller, response_id=ended[1]), query=OLDEST_FIRST)
        assert page["data"][0]["id"] == "msg_mine"


def test_an_unstored_response_is_in_its_conversation_only(user: ApiUser) -> None:
    """`store: false` forgets the response; the conversation gets its turn all the same."""
    conversation_id = create(user)
    turns = [user.begin(text, conversation=conversation_id, store=False) for text in ("a", "b")]
    for turn in turns:
        turn.end()
    assert texts(items(user, conversation_id)) == ["a", "ok", "b", "ok"]
    assert not Response.objects.exists()
    delete_conversation(caller=user.caller, conversation_id=conversation_id)
    assert not Item.objects.exists()
    assert not Turn.objects.exists()
    assert UsageRecord.objects.count() == 2


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_turn_without_an_answer_adds_nothing(user: ApiUser, status: str) -> None:
    """Neither its input nor its partial output."""
    conversation_id = create(user, "before")
    user.begin("lost", conversation=conversation_id).end(status=status)
    assert texts(items(user, conversation_id)) == ["before"]
    user.begin("cut", conversation=conversation_id).end("half an", status="incomplete")
    assert texts(items(user, conversation_id)) == ["before", "cut", "half an"]


def test_deleting_an_item_changes_no_response(user: ApiUser) -> None:
    """Neither an ended nor a running one; and the running one's end doesn't bring the item back."""
    conversation_id = create(user, "secret")
    ended = user.turn("one", conversation=conversation_id)
    running = user.begin("two", conversation=conversation_id)
    (secret, *_) = items(user, conversation_id)
    delete_conversation_item(caller=user.caller, conversation_id=conversation_id, item_id=secret["id"])
    assert texts(items(user, conversation_id)) == ["one", "ok"]
    late = running.end()
    assert texts(items(user, conversation_id)) == ["one", "ok", "two", "ok"]
    assert inputs(user, ended) == ["secret", "one"]
    assert inputs(user, late) == ["secret", "one", "ok", "two"]
    for response_id in (ended, late):
        delete_response(caller=user.caller, response_id=response_id)
    assert stored_texts() == {"one", "two", "ok"}


def test_a_history_that_only_an_unstored_response_read_is_deleted_with_it(user: ApiUser) -> None:
    """`store: false` on a conversation whose items are deleted meanwhile leaves none of them."""
    conversation_id = create(user, "secret")
    running = user.begin("two", conversation=conversation_id, store=False)
    (secret,) = items(user, conversation_id)
    delete_conversation_item(caller=user.caller, conversation_id=conversation_id, item_id=secret["id"])
    running.end()
    assert stored_texts() == {"two", "ok"}


@pytest.mark.parametrize("end", ["left", "crashed"])
def test_a_deleted_history_is_removed_with_the_last_job_that_read_it(user: ApiUser, end: str) -> None:
    """The job's reader left before a worker had it, or its worker was lost."""
    conversation_id = create(user, "secret")
    row = user.begin("two", conversation=conversation_id).row
    (secret,) = items(user, conversation_id)
    delete_conversation_item(caller=user.caller, conversation_id=conversation_id, item_id=secret["id"])
    assert Item.objects.count() == 1
    if end == "left":
        Response.objects.filter(pk=row.pk).update(worker="", lease_until=None)
        abandon_response(public_id=row.public_id)
    else:
        Response.objects.filter(pk=row.pk).update(lease_until=Now() - timedelta(seconds=1))
        assert recover_jobs() == 1
    assert not Response.objects.exists()
    assert not Item.objects.exists()
    assert not Turn.objects.exists()


def test_a_response_outlives_its_conversation(user: ApiUser) -> None:
    """Ended or running: it is stored as usual, and adds its turn to nothing."""
    conversation_id = create(user, "before")
    ended = user.turn("one", conversation=conversation_id)
    running = user.begin("two", conversation=conversation_id)
    delete_conversation(caller=user.caller, conversation_id=conversation_id)
    late = running.end()
    assert inputs(user, ended) == ["before", "one"]
    assert inputs(user, late) == ["before", "one", "ok", "two"]
    assert not Conversation.objects.exists()
    with pytest.raises(NotFound) as error:
        user.turn("three", conversation=conversation_id)
    assert error.value.param == "conversation"


def test_a_conversation_and_a_previous_response_exclude_each_other(user: ApiUser) -> None:
    """400, as with OpenAI; and a turn of an empty conversation needs input."""
    conversation_id = create(user)
    with pytest.raises(ApiError) as error:
        user.turn("x", conversation=conversation_id, previous=user.turn("y"))
    assert (error.value.status, error.value.param) == (400, "conversation")
    with pytest.raises(MissingParameter):
        user.begin([], conversation=conversation_id)


def test_more_ids_than_a_statement_takes_parameters(user: ApiUser) -> None:
    """They are looked up in batches."""
    conversation_id = create(user, "x")
    known = items(user, conversation_id)[0]["id"]
    turn = Conversation.objects.get(public_id=conversation_id).turn
    assert turn is not None
    many = [known, *(f"msg_{number}" for number in range(2 * BATCH))]
    before = connection.connection.setlimit(SQLITE_LIMIT_VARIABLE_NUMBER, BATCH + 10)
    try:
        assert list(find_items(caller=user.caller, wire_ids=many)) == [known]
        assert used_ids(turn.pk, many) == {known}
    finally:
        connection.connection.setlimit(SQLITE_LIMIT_VARIABLE_NUMBER, before)


@pytest.mark.parametrize("store", [True, False])
def test_a_conversation_lives_as_long_as_a_response_continues_it(user: ApiUser, store: bool) -> None:
    """It expires meanwhile: it can still be read, is not removed, and gets the turn, which extends its life."""
    conversation_id = create(user, "before")
    running = user.begin("late", conversation=conversation_id, store=store)
    Conversation.objects.update(expires_at=Now() - timedelta(seconds=1))
    assert expire_conversations() == 0
    assert texts(items(user, conversation_id)) == ["before"]
    running.end()
    assert texts(items(user, conversation_id)) == ["before", "late", "ok"]
    Conversation.objects.update(expires_at=Now() - timedelta(seconds=1))
    with pytest.raises(NotFound):
        items(user, conversation_id)
    assert expire_conversations() == 1
