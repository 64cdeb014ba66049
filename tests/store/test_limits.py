"""What the limits on the store refuse and evict."""

from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from responses_api.counting import take_counts
from responses_api.errors import (
    EntryTooLarge,
    InvalidRequest,
    NotFound,
    Overloaded,
    PreviousResponseNotFound,
    RateLimited,
    RequestTooLarge,
)
from responses_api.models import Conversation, Item, Project, Response, Turn
from responses_api.protocol import parse_list_query
from responses_api.protocol.requests.conversations import parse_update_conversation
from responses_api.selectors import item_pages
from responses_api.selectors.conversations import get_conversation, list_conversation_items
from responses_api.selectors.history import history_items
from responses_api.selectors.input_items import list_input_items
from responses_api.selectors.responses import get_previous, get_response, wire_response
from responses_api.selectors.store_totals import get_store_totals
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.finish_response import Ending, finish_response
from responses_api.services.jobs.leases import Lease
from responses_api.services.prompts.assemble_history import assembling, bytes_in_flight
from responses_api.services.store.delete_conversation import delete_conversation
from responses_api.services.store.delete_response import delete_response
from responses_api.services.store.edit_conversation import edit_conversation
from responses_api.services.store.make_room import make_room
from responses_api.services.store.touch_store import touch_conversation, touch_response
from tests.totals import recorded, true_totals
from tests.turns import Conversationalist, RunningTurn, timed_queries

from .people import new_conversation, other_project

pytestmark = pytest.mark.django_db

OLDEST_FIRST = parse_list_query([("order", "asc"), ("limit", "100")])


def stored() -> list[str]:
    """The ids of the responses there are, oldest first."""
    return list(Response.objects.order_by("pk").values_list("public_id", flat=True))


def conversations() -> list[str]:
    return list(Conversation.objects.order_by("pk").values_list("public_id", flat=True))


def counted(name: str) -> float:
    """What has been counted since the last look."""
    return take_counts().get(f"mlx_responses_store_{name}_total", 0)


# Entries and bytes


def test_the_response_used_longest_ago_makes_room(someone: Conversationalist, settings: Any) -> None:
    """Reading and continuing count as use; what is evicted is unknown, on every route, and counted."""
    settings.RESPONSES_STORE_MAX_ENTRIES = 3
    first, second, third = (someone.turn(text) for text in ("one", "two", "three"))
    touch_response(caller=someone.caller, response_id=first)
    fourth = someone.turn("four", previous=second)
    assert stored() == [first, second, fourth]
    with pytest.raises(NotFound):
        get_response(caller=someone.caller, response_id=third)
    with pytest.raises(PreviousResponseNotFound):
        someone.turn("go on", previous=third)
    fifth = someone.turn("five")
    assert stored() == [second, fourth, fifth]
    assert counted("evictions") == 2
    assert recorded() == true_totals()


def test_use_is_noted_by_the_minute(someone: Conversationalist, settings: Any) -> None:
    """The first use counts at once, then no more than one a minute; without a limit none is noted."""
    response_id, conversation_id = someone.turn("one"), new_conversation(someone)
    before = Response.objects.get().used_at, Conversation.objects.get().used_at
    touch_response(caller=someone.caller, response_id=response_id)
    touch_conversation(caller=someone.caller, conversation_id=conversation_id)
    assert (Response.objects.get().used_at, Conversation.objects.get().used_at) == before
    settings.RESPONSES_STORE_MAX_ENTRIES = settings.RESPONSES_CONVERSATION_STORE_MAX_ENTRIES = 9
    for rows, touch in (
        (Response.objects, lambda: touch_response(caller=someone.caller, response_id=response_id)),
        (Conversation.objects, lambda: touch_conversation(caller=someone.caller, conversation_id=conversation_id)),
    ):
        times: list[Any] = [rows.get().used_at]
        for earlier in (0, 0, 61):
            if earlier:
                rows.update(used_at=times[-1] - timedelta(seconds=earlier))
            touch()
            times.append(rows.get().used_at)
        assert times[0] < times[1] == times[2] < times[3]


def test_evicting_leaves_nothing_behind_and_breaks_no_later_turn(someone: Conversationalist, settings: Any) -> None:
    """A chain keeps its history when its ancestors are evicted, and goes wholly with its last response."""
    settings.RESPONSES_STORE_MAX_ENTRIES = 1
    previous: str | None = None
    for number in range(4):
        previous = someone.turn(f"turn {number}", previous=previous)
    assert stored() == [previous]
    page = list_input_items(get_response(caller=someone.caller, response_id=str(previous)), query=OLDEST_FIRST)
    assert len(page["data"]) == 7
    last = someone.turn("alone")
    assert stored() == [last]
    assert (Item.objects.count(), Turn.objects.count()) == (2, 1)


def test_bytes_are_limited_as_stored(someone: Conversationalist, settings: Any) -> None:
    """As many fit as fit to the byte; one byte less, and the oldest goes."""
    ids = [someone.turn("a" * 5000) for _ in range(3)]
    settings.RESPONSES_STORE_MAX_BYTES = get_store_totals().response_bytes
    make_room()
    assert stored() == ids
    settings.RESPONSES_STORE_MAX_BYTES -= 1
    make_room()
    assert stored() == ids[1:]
    ids.append(someone.turn("b" * 5000))
    assert stored() == ids[2:]
    assert get_store_totals().response_bytes <= settings.RESPONSES_STORE_MAX_BYTES


def test_a_store_of_no_bytes_keeps_nothing(someone: Conversationalist, settings: Any) -> None:
    """The request works; its response is evicted at once."""
    settings.RESPONSES_STORE_MAX_BYTES = 0
    someone.turn("one")
    assert not stored()
    assert not Item.objects.exists()
    assert (counted("evictions"), recorded()) == (1, (0, 0, 0, 0))


def test_running_jobs_are_never_evicted(someone: Conversationalist, settings: Any) -> None:
    """However long they run and however little room there is; nor what they continue is lost."""
    first = someone.turn("first")
    running = someone.begin("go on", previous_response_id=first)
    settings.RESPONSES_STORE_MAX_ENTRIES = 1
    second = someone.turn("second")
    assert stored() == [running.row.public_id, second]
    late = running.end()
    assert stored() == [late]
    assert len(list_input_items(get_response(caller=someone.caller, response_id=late), query=OLDEST_FIRST)["data"]) == 3


def test_a_project_evicts_its_own(someone: Conversationalist, settings: Any) -> None:
    """By entries and by bytes; nobody else's go for it."""
    other = other_project(someone)
    theirs = other.turn("theirs")
    settings.RESPONSES_PROJECT_MAX_ENTRIES = 2
    mine = [someone.turn(text) for text in ("one", "two", "three")]
    assert stored() == [theirs, *mine[1:]]
    settings.RESPONSES_PROJECT_MAX_ENTRIES = 0
    settings.RESPONSES_PROJECT_MAX_BYTES = get_store_totals(someone.caller.project.pk).response_bytes
    mine.append(someone.turn("four"))
    assert stored() == [theirs, mine[-1]]
    assert recorded() == true_totals()


def test_a_lower_limit_counts_from_the_next_sweep(someone: Conversationalist, settings: Any) -> None:
    """Nothing has to be stored first, and it takes more than one batch."""
    ids = []
    for _ in range(120):
        someone.announce()
        ids.append(someone.turn("x"))
    settings.RESPONSES_STORE_MAX_ENTRIES = 5
    make_room()
    assert stored() == ids[-5:]
    assert Item.objects.count() == 10


def test_an_eviction_costs_little_and_no_limit_nothing(someone: Conversationalist, settings: Any) -> None:
    """Without limits a turn records its figures by one statement, and looks at no figure."""
    someone.turn("warm")
    with timed_queries() as queries:
        someone.turn("no limit")
    assert sum("storechange" in text for text in queries.statements) == 1
    plain = len(queries.statements)
    settings.RESPONSES_STORE_MAX_ENTRIES = 100
    with timed_queries() as queries:
        someone.turn("within the limit")
    assert len(queries.statements) == plain + 1


# Off


def test_storing_can_be_turned_off(someone: Conversationalist, settings: Any) -> None:
    """No id can be addressed, nothing is stored unless it is asked for, and asking for it is refused."""
    known = someone.turn("before")
    settings.RESPONSES_STORE_MAX_ENTRIES = 0
    for response_id in (known, "resp_unknown", "no id"):
        for call in (get_response, get_previous, delete_response):
            with pytest.raises(InvalidRequest, match="RESPONSES_STORE_MAX_ENTRIES") as error:
                call(caller=someone.caller, response_id=response_id)
            assert type(error.value) is InvalidRequest
    with pytest.raises(InvalidRequest) as error:
        someone.begin("again", previous_response_id=known)
    assert error.value.param == "previous_response_id"
    with pytest.raises(InvalidRequest) as error:
        someone.begin("again", store=True)
    assert error.value.param == "store"
    Project.objects.update(store_default=True)
    running = someone.begin("again")
    assert running.prepared.body["store"] is False
    running.end()
    assert stored() == [known]


def test_conversations_can_be_turned_off(someone: Conversationalist, settings: Any) -> None:
    """Every route and the parameter answer 400."""
    known = new_conversation(someone, "hello")
    settings.RESPONSES_CONVERSATION_STORE_MAX_ENTRIES = 0
    calls = (
        lambda: new_conversation(someone),
        lambda: get_conversation(caller=someone.caller, conversation_id=known),
        lambda: delete_conversation(caller=someone.caller, conversation_id=known),
        lambda: list_conversation_items(caller=someone.caller, conversation_id=known, query=OLDEST_FIRST),
        lambda: someone.turn("hi", conversation=known),
    )
    for call in calls:
        with pytest.raises(InvalidRequest, match="RESPONSES_CONVERSATION_STORE_MAX_ENTRIES"):
            call()


# Conversations


def test_the_conversation_used_longest_ago_makes_room(someone: Conversationalist, settings: Any) -> None:
    """A turn is a use; one that a running job continues stays; responses keep what they read."""
    first, second = new_conversation(someone, "one"), new_conversation(someone, "two")
    answered = someone.turn("hi", conversation=second)
    someone.turn("hi", conversation=first)
    settings.RESPONSES_CONVERSATION_STORE_MAX_ENTRIES = 2
    third = new_conversation(someone)
    assert conversations() == [first, third]
    assert (
        len(list_input_items(get_response(caller=someone.caller, response_id=answered), query=OLDEST_FIRST)["data"])
        == 2
    )
    assert recorded() == true_totals()
    running = someone.begin("go on", conversation=first)
    Conversation.objects.filter(public_id=first).update(used_at=timezone.now() - timedelta(days=1))
    fourth = new_conversation(someone)
    assert conversations() == [first, fourth]
    running.end()
    assert conversations() == [first, fourth]
    assert counted("evictions") == 0


def test_the_bytes_of_conversations_are_limited(someone: Conversationalist, settings: Any) -> None:
    """Items and metadata count; responses have a limit of their own."""
    first = new_conversation(someone, "a" * 5000)
    second = new_conversation(someone, topic="b" * 400)
    settings.RESPONSES_CONVERSATION_STORE_MAX_BYTES = 6000
    settings.RESPONSES_STORE_MAX_BYTES = 4000
    answered = someone.turn("c", conversation=second)
    assert conversations() == [first, second]
    assert stored() == [answered]
    changed = parse_update_conversation({"metadata": {f"k{number}": "d" * 400 for number in range(5)}})
    edit_conversation(caller=someone.caller, conversation_id=second, request=changed)
    assert conversations() == [second]
    settings.RESPONSES_CONVERSATION_STORE_MAX_BYTES = 0
    new_conversation(someone)
    assert conversations() == []
    assert recorded() == true_totals()


# Too large, too much


def test_what_is_too_large_from_the_start_is_refused(someone: Conversationalist, settings: Any) -> None:
    """The history counts, the output is not known yet; `store: false` has no such limit."""
    first = someone.turn("a" * 20_000)
    settings.RESPONSES_ENTRY_MAX_BYTES = 25_000
    second = someone.turn("b", previous=first)
    with pytest.raises(EntryTooLarge) as error:
        someone.begin("c" * 5_000, previous_response_id=second)
    assert (error.value.status, error.value.code) == (413, "entry_too_large")
    assert counted("refusals") == 1
    someone.turn("c" * 5_000, previous=second, store=False)
    someone.turn("c" * 5_000)
    conversation_id = new_conversation(someone, "d" * 24_000)
    with pytest.raises(EntryTooLarge):
        someone.begin("e", conversation=conversation_id)
    instructions = "f" * 15_000
    assert someone.turn("g", instructions=instructions) in stored()


def too_large(running: RunningTurn) -> None:
    """End a response with more than can be stored, and then as one that failed for it."""
    row = running.row
    lease = Lease(response=row.pk, public_id=row.public_id, worker=row.worker, attempt=row.attempt)
    with pytest.raises(EntryTooLarge):
        running.end("x" * 10_000)
    failed = {**running.prepared.body, "status": "failed", "error": {"code": "server_error", "message": "Too large."}}
    ending = Ending(response={**failed, "output": []}, input_items=running.prepared.input_items, is_too_large=True)
    assert finish_response(lease=lease, ending=ending)


def test_what_becomes_too_large_is_kept_as_failed(someone: Conversationalist, settings: Any) -> None:
    """With what was sent, without output, and so that nobody can continue it; its conversation gets nothing."""
    settings.RESPONSES_ENTRY_MAX_BYTES = 9_000
    conversation_id = new_conversation(someone, "before")
    running = someone.begin("go", conversation=conversation_id)
    too_large(running)
    body: Any = wire_response(get_response(caller=someone.caller, response_id=running.row.public_id))
    assert (body["status"], body["output"], body["error"]["code"]) == ("failed", [], "server_error")
    with pytest.raises(InvalidRequest, match="failed"):
        get_previous(caller=someone.caller, response_id=running.row.public_id)
    page = list_conversation_items(caller=someone.caller, conversation_id=conversation_id, query=OLDEST_FIRST)
    assert len(page["data"]) == 1
    row = get_response(caller=someone.caller, response_id=running.row.public_id)
    assert [item["content"][0]["text"] for item in history_items(row.turn_id)] == ["before", "go"]
    assert Item.objects.count() == 2
    assert counted("refusals") == 1
    assert recorded() == true_totals()


def test_running_jobs_may_not_take_more_than_the_store(someone: Conversationalist, settings: Any) -> None:
    """429 until some have ended; what is not to be stored is not refused; a store of nothing has no such limit."""
    settings.RESPONSES_STORE_MAX_BYTES = 25_000
    running = [someone.begin("a" * 9_000) for _ in range(2)]
    with pytest.raises(RateLimited) as error:
        someone.begin("a" * 9_000)
    assert "Retry-After" in error.value.headers
    assert "x-should-retry" not in error.value.headers
    assert counted("refusals") == 1
    someone.turn("a" * 9_000, store=False)
    running[0].end()
    someone.turn("a" * 9_000)
    with pytest.raises(RateLimited) as error:
        someone.begin("a" * 31_000)
    assert error.value.headers["x-should-retry"] == "false"
    settings.RESPONSES_STORE_MAX_BYTES = 0
    someone.turn("a" * 31_000)


def test_histories_are_read_within_a_budget(settings: Any) -> None:
    """What others hold counts; it is free again afterwards, also after a fault; no history needs nothing."""
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
    """Its requests side by side have half of the budget; one alone may have all that is free."""
    settings.RESPONSES_ASSEMBLY_MAX_BYTES = 1000
    with assembling("a") as first, assembling("a") as second, assembling("b") as other:
        first.add(300)
        second.add(200)
        with pytest.raises(Overloaded):
            second.add(1)
        other.add(500)


def test_a_list_ends_early_where_its_items_are_large(
    someone: Conversationalist, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It then says that there is more. No page loads beyond its bytes, and all pages have all items, of a response, a
    running one and a conversation, in both orders.
    """
    monkeypatch.setattr(item_pages, "PAGE_BYTES", 2_500)
    conversation_id = new_conversation(someone, *(f"{number} " + "a" * 800 for number in range(5)), "b" * 5_000)
    ended = someone.turn("c" * 900, conversation=conversation_id)
    asked = {"input": "go " + "d" * 900, "conversation": conversation_id, "background": True}
    job = create_response(caller=someone.caller, public_id=new_response_id(), payload=asked).public_id
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
        (partial(list_conversation_items, caller=someone.caller, conversation_id=conversation_id), 8),
    ]
    for list_items, number in lists:
        forwards, backwards = (pages(list_items, order) for order in ("asc", "desc"))
        assert [item for page in forwards for item in page] == [item for page in backwards for item in page][::-1]
        assert len({item for page in forwards for item in page}) == number
        assert len(forwards) > 3
        assert len(forwards[0]) == 2
    assert max(taken) < 5_500
