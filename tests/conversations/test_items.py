"""Conversations and their items: all operations, and what is left after deletion."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from responses_api.caller import Caller
from responses_api.errors import ApiError, InvalidValue, MissingParameter, NotFound
from responses_api.models import Conversation, Item, Project, Turn, TurnItem
from responses_api.protocol import parse_list_query
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


def message(text: str, **fields: Any) -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "content": text, **fields}


def create(caller: Caller, *texts: str, **fields: Any) -> str:
    """The id of a create conversation with these messages."""
    body = {"items": [message(text) for text in texts], **fields}
    return create_conversation(caller=caller, request=parse_create_conversation(body)).public_id


def add(caller: Caller, conversation_id: str, *items: dict[str, Any]) -> list[str]:
    """Add items. Returns their ids."""
    request = parse_create_items({"items": list(items)})
    added = add_conversation_items(caller=caller, conversation_id=conversation_id, request=request)
    return [item["id"] for item in added]


def page(caller: Caller, conversation_id: str, **arguments: Any) -> dict[str, Any]:
    """A page of items."""
    query = parse_list_query([(name, str(value)) for name, value in arguments.items()])
    found: Any = list_conversation_items(caller=caller, conversation_id=conversation_id, query=query)
    return found


def texts(caller: Caller, conversation_id: str) -> list[str]:
    """The texts of all items, oldest first."""
    items = page(caller, conversation_id, order="asc", limit=100)["data"]
    return [item["content"][0]["text"] for item in items]


def test_a_conversation_is_created_read_updated_and_deleted(caller: Caller) -> None:
    """Its object has four fields; metadata is replaced as a whole; nothing is left afterwards."""
    conversation_id = create(caller, "one", "two", metadata={"topic": "a"})
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
    """Newest first by default; `last_id` leads to the next page."""
    conversation_id = create(caller, "0", "1")
    add(caller, conversation_id, message("2"), message("3"), message("4"))
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
    """Adding nothing adds nothing."""
    conversation_id = create(caller)
    assert add(caller, conversation_id) == []
    found = page(caller, conversation_id)
    assert (found["data"], found["has_more"], found["first_id"]) == ([], False, None)
    assert not Turn.objects.exists()


def test_a_clients_id_is_kept_once(caller: Caller) -> None:
    """A second item of the same id in a conversation gets a create id, even within one request."""
    conversation_id = create(caller)
    first = add(caller, conversation_id, message("a", id="msg_mine"), message("b", id="msg_mine"))
    second = add(caller, conversation_id, message("c", id="msg_mine"))
    assert first[0] == "msg_mine"
    assert len({*first, *second}) == 3
    found: Any = get_conversation_item(caller=caller, conversation_id=conversation_id, item_id="msg_mine")
    assert found["content"][0]["text"] == "a"


@pytest.mark.parametrize("position", range(6))
def test_one_item_is_deleted_and_no_other(caller: Caller, position: int) -> None:
    """At any position: alone in its turn, in the middle, first or last."""
    conversation_id = create(caller, "0")
    ids = [entry["id"] for entry in page(caller, conversation_id)["data"]]
    ids += add(caller, conversation_id, message("1"), message("2"), message("3"))
    ids += add(caller, conversation_id, message("4"))
    ids += add(caller, conversation_id, message("5"))
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


def test_other_projects_get_the_answer_for_an_unknown_id(caller: Caller) -> None:
    """On every route, word for word."""
    conversation_id = create(caller, "secret")
    (item,) = page(caller, conversation_id)["data"]
    other = Caller(project=Project.objects.create(name="other"))
    own = create(other, "mine")

    def answers(conversation_id: str) -> list[str]:
        calls: list[Any] = [
            lambda: get_conversation(caller=other, conversation_id=conversation_id),
            lambda: page(other, conversation_id),
            lambda: get_conversation_item(caller=other, conversation_id=conversation_id, item_id=item["id"]),
            lambda: add(other, conversation_id, message("x")),
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
    """0 is forever. An expired one is unknown at once and deleted by the sweep; adding items restarts the time."""
    unbounded = create(caller, "forever")
    assert Conversation.objects.get(public_id=unbounded).expires_at is None
    settings.RESPONSES_CONVERSATION_STORE_TTL_SECONDS = 100
    bounded = create(caller, "bounded")
    rows = Conversation.objects.filter(public_id=bounded)
    rows.update(expires_at=Now() + timedelta(seconds=5))
    add(caller, bounded, message("more"))
    soon = Now() + timedelta(seconds=101)
    assert rows.filter(expires_at__gt=Now() + timedelta(seconds=50), expires_at__lt=soon).exists()
    rows.update(expires_at=Now() - timedelta(seconds=1))
    with pytest.raises(NotFound):
        get_conversation(caller=caller, conversation_id=bounded)
    with pytest.raises(NotFound):
        add(caller, bounded, message("too late"))
    assert expire_responses() == 1
    assert list(Conversation.objects.values_list("public_id", flat=True)) == [unbounded]
    assert Item.objects.count() == 1


def test_a_project_is_deleted_with_its_conversations() -> None:
    """With their turns and items too."""
    project = Project.objects.create(name="short-lived")
    create(Caller(project=project), "one", "two")
    delete_project(project=project)
    assert not Conversation.objects.exists()
    assert not Item.objects.exists()


@pytest.mark.parametrize(
    ("parse", "body", "param"),
    [
        (parse_create_conversation, {"items": [message("x")] * 21}, "items"),
        (parse_create_items, {"items": [message("x")] * 21}, "items"),
        (parse_create_conversation, {"items": [message("x"), {"role": "nobody", "content": ""}]}, "items[1].role"),
        (parse_create_conversation, {"metadata": {"k": 1}}, "metadata.k"),
        (parse_create_conversation, {"name": "x"}, "name"),
        (parse_create_conversation, [], None),
        (parse_update_conversation, {"metadata": {"k" * 65: "v"}}, "metadata"),
        (parse_create_items, {"items": "hello"}, "items"),
        (parse_create_items, {"items": [{"type": "item_reference", "id": "msg_1"}]}, "items[0]"),
    ],
)
def test_an_error_names_its_place(parse: Any, body: Any, param: str | None) -> None:
    """Each mistake is a 400."""
    with pytest.raises(ApiError) as error:
        parse(body)
    assert (error.value.status, error.value.param) == (400, param)


def test_a_missing_required_field_is_named() -> None:
    """An update needs metadata, and null clears it; nulls in a create conversation are ignored."""
    for parse in (parse_update_conversation, parse_create_items):
        with pytest.raises(MissingParameter):
            parse({})
    assert parse_update_conversation({"metadata": None}).metadata == {}
    assert parse_create_conversation({"items": None, "metadata": None}).items == ()
    assert len(parse_create_items({"items": [message("x")] * 20}).items) == 20
