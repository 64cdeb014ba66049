"""Limits of the store: evictions and refusals."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from responses_api.errors import (
    InvalidRequest,
    NotFound,
    PreviousResponseNotFound,
)
from responses_api.models import Conversation, Item, Project, Response, Turn
from responses_api.protocol import parse_list_query
from responses_api.protocol.requests.conversations import parse_update_conversation
from responses_api.selectors.conversations import get_conversation, list_conversation_items
from responses_api.selectors.input_items import list_input_items
from responses_api.selectors.responses import get_previous, get_response
from responses_api.selectors.store_totals import get_store_totals
from responses_api.services.store.delete_conversation import delete_conversation
from responses_api.services.store.delete_response import delete_response
from responses_api.services.store.edit_conversation import edit_conversation
from responses_api.services.store.make_room import make_room
from responses_api.services.store.touch_store import touch_conversation, touch_response
from tests.totals import recorded_totals, true_totals
from tests.turns import ApiUser, timed_queries

from .figures import conversations, counted, stored
from .people import new_conversation, other_project

pytestmark = pytest.mark.django_db

OLDEST_FIRST = parse_list_query([("order", "asc"), ("limit", "100")])


# Entries and bytes


def test_the_least_recently_used_response_is_evicted(user: ApiUser, settings: Any) -> None:
    """Reading and continuing count as use. An evicted response is unknown on every route, and counted."""
    settings.RESPONSES_STORE_MAX_ENTRIES = 3
    first, second, third = (user.turn(text) for text in ("one", "two", "three"))
    touch_response(caller=user.caller, response_id=first)
    fourth = user.turn("four", previous=second)
    assert stored() == [first, second, fourth]
    with pytest.raises(NotFound):
        get_response(caller=user.caller, response_id=third)
    with pytest.raises(PreviousResponseNotFound):
        user.turn("go on", previous=third)
    fifth = user.turn("five")
    assert stored() == [second, fourth, fifth]
    assert counted("evictions") == 2
    assert recorded_totals() == true_totals()


def test_use_is_recorded_once_a_minute(user: ApiUser, settings: Any) -> None:
    """The first use is recorded at once, then at most one per minute; without a limit none is recorded."""
    response_id, conversation_id = user.turn("one"), new_conversation(user)
    before = Response.objects.get().used_at, Conversation.objects.get().used_at
    touch_response(caller=user.caller, response_id=response_id)
    touch_conversation(caller=user.caller, conversation_id=conversation_id)
    assert (Response.objects.get().used_at, Conversation.objects.get().used_at) == before
    settings.RESPONSES_STORE_MAX_ENTRIES = settings.RESPONSES_CONVERSATION_STORE_MAX_ENTRIES = 9
    for rows, touch in (
        (Response.objects, lambda: touch_response(caller=user.caller, response_id=response_id)),
        (Conversation.objects, lambda: touch_conversation(caller=user.caller, conversation_id=conversation_id)),
    ):
        times: list[Any] = [rows.get().used_at]
        for earlier in (0, 0, 61):
            if earlier:
                rows.update(used_at=times[-1] - timedelta(seconds=earlier))
            touch()
            times.append(rows.get().used_at)
        assert times[0] < times[1] == times[2] < times[3]


def test_evicting_leaves_nothing_behind_and_breaks_no_later_turn(user: ApiUser, settings: Any) -> None:
    """A chain keeps its history when its ancestors are evicted, and is deleted with its last response."""
    settings.RESPONSES_STORE_MAX_ENTRIES = 1
    previous: str | None = None
    for number in range(4):
        previous = user.turn(f"turn {number}", previous=previous)
    assert stored() == [previous]
    page = list_input_items(get_response(caller=user.caller, response_id=str(previous)), query=OLDEST_FIRST)
    assert len(page["data"]) == 7
    last = user.turn("alone")
    assert stored() == [last]
    assert (Item.objects.count(), Turn.objects.count()) == (2, 1)


def test_bytes_are_limited_as_stored(user: ApiUser, settings: Any) -> None:
    """The limit is exact; one byte less, and the oldest response is evicted."""
    ids = [user.turn("a" * 5000) for _ in range(3)]
    settings.RESPONSES_STORE_MAX_BYTES = get_store_totals().response_bytes
    make_room()
    assert stored() == ids
    settings.RESPONSES_STORE_MAX_BYTES -= 1
    make_room()
    assert stored() == ids[1:]
    ids.append(user.turn("b" * 5000))
    assert stored() == ids[2:]
    assert get_store_totals().response_bytes <= settings.RESPONSES_STORE_MAX_BYTES


def test_a_store_of_zero_bytes_keeps_nothing(user: ApiUser, settings: Any) -> None:
    """The request works; its response is evicted at once."""
    settings.RESPONSES_STORE_MAX_BYTES = 0
    user.turn("one")
    assert not stored()
    assert not Item.objects.exists()
    assert (counted("evictions"), recorded_totals()) == (1, (0, 0, 0, 0))


def test_running_jobs_are_never_evicted(user: ApiUser, settings: Any) -> None:
    """However long they run and however small the store; what they continue is not lost either."""
    first = user.turn("first")
    running = user.begin("go on", previous_response_id=first)
    settings.RESPONSES_STORE_MAX_ENTRIES = 1
    second = user.turn("second")
    assert stored() == [running.row.public_id, second]
    late = running.end()
    assert stored() == [late]
    assert len(list_input_items(get_response(caller=user.caller, response_id=late), query=OLDEST_FIRST)["data"]) == 3


def test_a_project_evicts_its_own_responses(user: ApiUser, settings: Any) -> None:
    """By entries and by bytes; other projects keep other_id."""
    other = other_project(user)
    other_id = other.turn("theirs")
    settings.RESPONSES_PROJECT_MAX_ENTRIES = 2
    ids = [user.turn(text) for text in ("one", "two", "three")]
    assert stored() == [other_id, *ids[1:]]
    settings.RESPONSES_PROJECT_MAX_ENTRIES = 0
    settings.RESPONSES_PROJECT_MAX_BYTES = get_store_totals(user.caller.project.pk).response_bytes
    ids.append(user.turn("four"))
    assert stored() == [other_id, ids[-1]]
    assert recorded_totals() == true_totals()


def test_a_lower_limit_takes_effect_with_the_next_sweep(user: ApiUser, settings: Any) -> None:
    """Without a new response, and in more than one batch."""
    ids = []
    for _ in range(120):
        user.announce()
        ids.append(user.turn("x"))
    settings.RESPONSES_STORE_MAX_ENTRIES = 5
    make_room()
    assert stored() == ids[-5:]
    assert Item.objects.count() == 10


def test_eviction_takes_few_statements_and_no_limit_takes_none(user: ApiUser, settings: Any) -> None:
    """Without limits a turn records its totals in one statement, and reads none."""
    user.turn("warm")
    with timed_queries() as queries:
        user.turn("no limit")
    assert sum("storechange" in text for text in queries.statements) == 1
    plain = len(queries.statements)
    settings.RESPONSES_STORE_MAX_ENTRIES = 100
    with timed_queries() as queries:
        user.turn("within the limit")
    assert len(queries.statements) == plain + 1


# Off


def test_storing_can_be_turned_off(user: ApiUser, settings: Any) -> None:
    """No id can be read, nothing is stored by default, and `store: true` is refused."""
    known = user.turn("before")
    settings.RESPONSES_STORE_MAX_ENTRIES = 0
    for response_id in (known, "resp_unknown", "no id"):
        for call in (get_response, get_previous, delete_response):
            with pytest.raises(InvalidRequest, match="RESPONSES_STORE_MAX_ENTRIES") as error:
                call(caller=user.caller, response_id=response_id)
            assert type(error.value) is InvalidRequest
    with pytest.raises(InvalidRequest) as error:
        user.begin("again", previous_response_id=known)
    assert error.value.param == "previous_response_id"
    with pytest.raises(InvalidRequest) as error:
        user.begin("again", store=True)
    assert error.value.param == "store"
    Project.objects.update(store_default=True)
    running = user.begin("again")
    body: Any = running.prepared.body
    assert body["store"] is False
    running.end()
    assert stored() == [known]


def test_conversations_can_be_turned_off(user: ApiUser, settings: Any) -> None:
    """Every route and the parameter answer 400."""
    known = new_conversation(user, "hello")
    settings.RESPONSES_CONVERSATION_STORE_MAX_ENTRIES = 0
    calls = (
        lambda: new_conversation(user),
        lambda: get_conversation(caller=user.caller, conversation_id=known),
        lambda: delete_conversation(caller=user.caller, conversation_id=known),
        lambda: list_conversation_items(caller=user.caller, conversation_id=known, query=OLDEST_FIRST),
        lambda: user.turn("hi", conversation=known),
    )
    for call in calls:
        with pytest.raises(InvalidRequest, match="RESPONSES_CONVERSATION_STORE_MAX_ENTRIES"):
            call()


# Conversations


def test_the_least_recently_used_conversation_is_evicted(user: ApiUser, settings: Any) -> None:
    """A turn counts as use. A conversation that a running job continues stays; responses keep what they read."""
    first, second = new_conversation(user, "one"), new_conversation(user, "two")
    answered = user.turn("hi", conversation=second)
    user.turn("hi", conversation=first)
    settings.RESPONSES_CONVERSATION_STORE_MAX_ENTRIES = 2
    third = new_conversation(user)
    assert conversations() == [first, third]
    assert (
        len(list_input_items(get_response(caller=user.caller, response_id=answered), query=OLDEST_FIRST)["data"]) == 2
    )
    assert recorded_totals() == true_totals()
    running = user.begin("go on", conversation=first)
    Conversation.objects.filter(public_id=first).update(used_at=timezone.now() - timedelta(days=1))
    fourth = new_conversation(user)
    assert conversations() == [first, fourth]
    running.end()
    assert conversations() == [first, fourth]
    assert counted("evictions") == 0


def test_the_bytes_of_conversations_are_limited(user: ApiUser, settings: Any) -> None:
    """Items and metadata count; responses have a separate limit."""
    first = new_conversation(user, "a" * 5000)
    second = new_conversation(user, topic="b" * 400)
    settings.RESPONSES_CONVERSATION_STORE_MAX_BYTES = 6000
    settings.RESPONSES_STORE_MAX_BYTES = 4000
    answered = user.turn("c", conversation=second)
    assert conversations() == [first, second]
    assert stored() == [answered]
    changed = parse_update_conversation({"metadata": {f"k{number}": "d" * 400 for number in range(5)}})
    edit_conversation(caller=user.caller, conversation_id=second, request=changed)
    assert conversations() == [second]
    settings.RESPONSES_CONVERSATION_STORE_MAX_BYTES = 0
    new_conversation(user)
    assert conversations() == []
    assert recorded_totals() == true_totals()
