"""Conversations and their items: what can be done to them, and what is left when they go."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from responses_api.caller import Caller
from responses_api.errors import ApiError, InvalidValue, MissingParameter, NotFound
from responses_api.models import Conversation, Item, Project, Turn, TurnItem
from responses_api.protocol import parse_list_query
from responses_api.protocol.objects import ItemList
from responses_api.protocol.requests.conversations import (
    parse_create_conversation,
    parse_create_items,
    parse_update_conversation,
)
from responses_api.selectors.conversations import (
    get_conversation,
    get_conversation_item,
    list_conversation_items,
    wire_conversation,
)
from responses_api.services.accounts.authenticate import default_project
from responses_api.services.accounts.delete_project import delete_project
from responses_api.services.processes.expire_responses import expire_responses
from responses_api.services.store.create_conversation import create_conversation
from responses_api.services.store.delete_conversation import delete_conversation
from responses_api.services.store.edit_conversation import edit_conversation
from responses_api.services.store.edit_conversation_items import add_conversation_items, delete_conversation_item

pytestmark = pytest.mark.django_db


@pytest.fixture
def caller() -> Caller:
    return Caller(project=default_project())


def said(text: str, **fields: Any) -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "content": text, **fields}


def new(caller: Caller, *texts: str, **fields: Any) -> str:
    """The id of a new conversation with these messages."""
    body = {"items": [said(text) for text in texts], **fields}
    return create_conversation(caller=caller, request=parse_create_conversation(body)).public_id


def add(caller: Caller, conversation_id: str, *items: dict[str, Any]) -> list[str]:
    """Add items; their ids."""
    request = parse_create_items({"items": list(items)})
    added = add_conversation_items(caller=caller, conversation_id=conversation_id, request=request)
    return [item["id"] for item in added]


def page(caller: Caller, conversation_id: str, **arguments: Any) -> ItemList:
    """A page of items."""
    query = parse_list_query([(name, str(value)) for name, value in arguments.items()])
    return list_conversation_items(caller=caller, conversation_id=conversation_id, query=query)


def texts(caller: Caller, conversation_id: str) -> list[str]:
    """What all items say, oldest first."""
    items = page(caller, conversation_id, order="asc", limit=100)["data"]
    return [item["content"][0]["text"] for item in items]


def test_a_conversation_is_made_read_changed_and_deleted(caller: Caller) -> None:
    """Its object has four fields; metadata is replaced whole; nothing is left in the end."""
    conversation_id = new(caller, "one", "two", metadata={"topic": "a"})
    row = get_conversation(caller=caller, conversation_id=conversation_id)
    assert wire_conversation(row) == {
        "id": conversation_id,
        "object": "conversation",
        "created_at": int(row.created_at.timestamp()),
        "metadata": {"topic": "a"},
    }
    request = parse_update_conversation({"metadata": {"mood": "b"}})
    edit_conversation(caller=caller, conversation_id=conversation_id, request=request)
    row.refresh_from_db()
    assert row.metadata == {"mood": "b"}
    delete_conversation(caller=caller, conversation_id=conversation_id)
    for table in (Conversation, Turn, TurnItem, Item):
        assert not table._default_manager.exists()
    with pytest.raises(NotFound):
        delete_conversation(caller=caller, conversation_id=conversation_id)


def test_items_are_listed_page_by_page_in_both_orders(caller: Caller) -> None:
    """Newest first unless asked otherwise; `last_id` leads on."""
    conversation_id = new(caller, "0", "1")
    add(caller, conversation_id, said("2"), said("3"), said("4"))
    assert [item["content"][0]["text"] for item in page(caller, conversation_id)["data"]] == list("43210")
    seen: list[str] = []
    arguments: dict[str, Any] = {"order": "asc", "limit": 2}
    while True:
        found = page(caller, conversation_id, **arguments)
        seen += (item["content"][0]["text"] for item in found["data"])
        if not found["has_more"]:
            break
        arguments["after"] = found["last_id"]
    assert seen == list("01234")
    with pytest.raises(InvalidValue):
        page(caller, conversation_id, after="msg_elsewhere")


def test_an_empty_conversation_lists_nothing(caller: Caller) -> None:
    """And adding nothing adds nothing."""
    conversation_id = new(caller)
    assert add(caller, conversation_id) == []
    found = page(caller, conversation_id)
    assert (found["data"], found["has_more"], found["first_id"]) == ([], False, None)
    assert not Turn.objects.exists()


def test_a_clients_id_is_kept_once(caller: Caller) -> None:
    """A second item of the same id in a conversation gets one of its own, also within one request."""
    conversation_id = new(caller)
    first = add(caller, conversation_id, said("a", id="msg_mine"), said("b", id="msg_mine"))
    second = add(caller, conversation_id, said("c", id="msg_mine"))
    assert first[0] == "msg_mine"
    assert len({*first, *second}) == 3
    found = get_conversation_item(caller=caller, conversation_id=conversation_id, item_id="msg_mine")
    assert found["content"][0]["text"] == "a"


@pytest.mark.parametrize("position", range(6))
def test_one_item_is_deleted_and_no_other(caller: Caller, position: int) -> None:
    """Wherever it stands: alone in its turn, in the middle of one, first or last."""
    conversation_id = new(caller, "0")
    ids = [entry["id"] for entry in page(caller, conversation_id)["data"]]
    ids += add(caller, conversation_id, said("1"), said("2"), said("3"))
    ids += add(caller, conversation_id, said("4"))
    ids += add(caller, conversation_id, said("5"))
    delete_conversation_item(caller=caller, conversation_id=conversation_id, item_id=ids[position])
    assert texts(caller, conversation_id) == [text for text in "012345" if text != str(position)]
    assert Item.objects.count() == 5
    with pytest.raises(NotFound):
        delete_conversation_item(caller=caller, conversation_id=conversation_id, item_id=ids[position])
    for item_id in ids[:position] + ids[position + 1 :]:
        delete_conversation_item(caller=caller, conversation_id=conversation_id, item_id=item_id)
    assert texts(caller, conversation_id) == []
    assert not Turn.objects.exists()
    assert not Item.objects.exists()


def test_other_projects_get_the_same_answer_as_for_an_unknown_id(caller: Caller) -> None:
    """On every route, word for word."""
    conversation_id = new(caller, "secret")
    (item,) = page(caller, conversation_id)["data"]
    other = Caller(project=Project.objects.create(name="other"))
    own = new(other, "mine")

    def answers(conversation_id: str) -> list[str]:
        calls: list[Any] = [
            lambda: get_conversation(caller=other, conversation_id=conversation_id),
            lambda: page(other, conversation_id),
            lambda: get_conversation_item(caller=other, conversation_id=conversation_id, item_id=item["id"]),
            lambda: add(other, conversation_id, said("x")),
            lambda: delete_conversation_item(caller=other, conversation_id=conversation_id, item_id=item["id"]),
            lambda: delete_conversation(caller=other, conversation_id=conversation_id),
        ]
        found = []
        for call in calls:
            with pytest.raises(NotFound) as error:
                call()
            found.append(error.value.message.replace(conversation_id, "ID"))
        return found

    assert answers(conversation_id) == answers("conv_unknown")
    with pytest.raises(NotFound):
        get_conversation_item(caller=other, conversation_id=own, item_id=item["id"])
    assert texts(caller, conversation_id) == ["secret"]


def test_the_time_to_live_counts_from_the_last_turn(caller: Caller, settings: Any) -> None:
    """0 is for ever; what is over is unknown at once and gone with the sweep; adding items begins anew."""
    unbounded = new(caller, "for ever")
    assert Conversation.objects.get(public_id=unbounded).expires_at is None
    settings.RESPONSES_CONVERSATION_STORE_TTL_SECONDS = 100
    bounded = new(caller, "bounded")
    rows = Conversation.objects.filter(public_id=bounded)
    rows.update(expires_at=Now() + timedelta(seconds=5))
    add(caller, bounded, said("more"))
    soon = Now() + timedelta(seconds=101)
    assert rows.filter(expires_at__gt=Now() + timedelta(seconds=50), expires_at__lt=soon).exists()
    rows.update(expires_at=Now() - timedelta(seconds=1))
    with pytest.raises(NotFound):
        get_conversation(caller=caller, conversation_id=bounded)
    with pytest.raises(NotFound):
        add(caller, bounded, said("too late"))
    assert expire_responses() == 1
    assert list(Conversation.objects.values_list("public_id", flat=True)) == [unbounded]
    assert Item.objects.count() == 1


def test_a_project_goes_with_its_conversations() -> None:
    """Its turns and items too."""
    project = Project.objects.create(name="short-lived")
    new(Caller(project=project), "one", "two")
    delete_project(project=project)
    assert not Conversation.objects.exists()
    assert not Item.objects.exists()


@pytest.mark.parametrize(
    ("parse", "body", "param"),
    [
        (parse_create_conversation, {"items": [said("x")] * 21}, "items"),
        (parse_create_items, {"items": [said("x")] * 21}, "items"),
        (parse_create_conversation, {"items": [said("x"), {"role": "nobody", "content": ""}]}, "items[1].role"),
        (parse_create_conversation, {"metadata": {"k": 1}}, "metadata.k"),
        (parse_create_conversation, {"name": "x"}, "name"),
        (parse_create_conversation, [], None),
        (parse_update_conversation, {"metadata": {"k" * 65: "v"}}, "metadata"),
        (parse_create_items, {"items": "hello"}, "items"),
        (parse_create_items, {"items": [{"type": "item_reference", "id": "msg_1"}]}, "items[0]"),
    ],
)
def test_a_fault_names_its_place(parse: Any, body: Any, param: str | None) -> None:
    """One 400 for one mistake."""
    with pytest.raises(ApiError) as error:
        parse(body)
    assert (error.value.status, error.value.param) == (400, param)


def test_what_is_required_is_asked_for() -> None:
    """An update needs metadata, and null empties it; nulls of a new conversation are as good as nothing."""
    for parse in (parse_update_conversation, parse_create_items):
        with pytest.raises(MissingParameter):
            parse({})
    assert parse_update_conversation({"metadata": None}).metadata == {}
    assert parse_create_conversation({"items": None, "metadata": None}).items == ()
    assert len(parse_create_items({"items": [said("x")] * 20}).items) == 20
