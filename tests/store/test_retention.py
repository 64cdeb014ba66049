"""Deletion and expiry: they remove a response with everything that only it used, and nothing else."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from responses_api import bus
from responses_api.bus.messages import ForgetResponses
from responses_api.caller import Caller
from responses_api.errors import NotFound, PreviousResponseNotFound
from responses_api.models import Conversation, Item, Response, Turn, TurnItem, UsageRecord
from responses_api.protocol.requests.conversations import parse_create_conversation
from responses_api.selectors.items import find_items
from responses_api.selectors.responses import get_previous, get_response
from responses_api.services.processes.expire_responses import expire_responses
from responses_api.services.store.create_conversation import create_conversation
from responses_api.services.store.delete_response import delete_response
from tests.factories import make_project
from tests.turns import ApiUser

pytestmark = pytest.mark.django_db


def chain(user: ApiUser, length: int, previous: str | None = None) -> list[str]:
    """The ids of a chain of responses."""
    ids: list[str] = []
    for number in range(length):
        previous = user.turn(f"turn {number}", previous=previous)
        ids.append(previous)
    return ids


def expire(*ids: str) -> None:
    """Move the responses' expiry into the past."""
    Response.objects.filter(public_id__in=ids).update(expires_at=Now() - timedelta(seconds=1))


def test_an_expired_response_is_unknown_at_once(user: ApiUser) -> None:
    """For reading and for continuing, even before the sweep."""
    (response_id,) = chain(user, 1)
    expire(response_id)
    with pytest.raises(NotFound):
        get_response(caller=user.caller, response_id=response_id)
    with pytest.raises(PreviousResponseNotFound):
        get_previous(caller=user.caller, response_id=response_id)


def test_items_of_expired_histories_are_unknown_at_once(user: ApiUser) -> None:
    """Even before the sweep, except items that something else still uses."""

    def message(item_id: str) -> list[dict[str, Any]]:
        return [{"role": "user", "content": "x", "id": item_id}]

    shared, gone = user.begin(message("msg_shared")).end(), user.begin(message("msg_gone")).end()
    later = user.begin(message("msg_later"), previous_response_id=shared).end()
    conversations = [
        create_conversation(caller=user.caller, request=parse_create_conversation({"items": message(item_id)})).pk
        for item_id in ("msg_old", "msg_talk")
    ]
    wanted = ["msg_shared", "msg_gone", "msg_later", "msg_old", "msg_talk"]
    assert sorted(find_items(caller=user.caller, wire_ids=wanted)) == sorted(wanted)
    expire(shared, gone)
    Conversation.objects.filter(pk=conversations[0]).update(expires_at=Now() - timedelta(seconds=1))
    assert sorted(find_items(caller=user.caller, wire_ids=wanted)) == ["msg_later", "msg_shared", "msg_talk"]
    expire(later)
    assert sorted(find_items(caller=user.caller, wire_ids=wanted)) == ["msg_talk"]


def test_a_whole_chain_expires_to_nothing(user: ApiUser) -> None:
    """No turn or item is left behind; the usage records stay."""
    expire(*chain(user, 5))
    assert expire_responses() == 5
    assert not Response.objects.exists()
    assert not Turn.objects.exists()
    assert not TurnItem.objects.exists()
    assert not Item.objects.exists()
    assert UsageRecord.objects.count() == 5


def test_turns_that_a_later_response_needs_stay(user: ApiUser) -> None:
    """The turns that a live response builds on are kept, those of a dead branch are not."""
    trunk = chain(user, 3)
    branch = chain(user, 2, previous=trunk[0])
    expire(*trunk[:2], *branch)
    assert expire_responses() == 4
    assert list(Response.objects.values_list("public_id", flat=True)) == [trunk[2]]
    assert Turn.objects.count() == 3
    assert Item.objects.count() == 6
    delete_response(caller=user.caller, response_id=trunk[2])
    assert not Turn.objects.exists()
    assert not Item.objects.exists()


def test_workers_forget_a_deleted_response(user: ApiUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and not when another project tries to delete it."""
    published: list[Any] = []
    (response_id,) = chain(user, 1)
    monkeypatch.setattr(bus, "publish", lambda group, message: published.append((group, message)))
    with pytest.raises(NotFound):
        delete_response(caller=Caller(project=make_project()), response_id=response_id)
    delete_response(caller=user.caller, response_id=response_id)
    assert published == [(bus.process_group(user.worker), ForgetResponses(responses=(response_id,)))]


def test_many_responses_expire_in_batches(user: ApiUser) -> None:
    """One call removes more than one batch."""
    ids = []
    for _ in range(205):
        user.announce()
        ids.append(user.turn("alone"))
    expire(*ids)
    assert expire_responses() == 205
    assert not Item.objects.exists()


def test_the_time_to_live_counts_from_completion_and_zero_is_forever(user: ApiUser, settings: Any) -> None:
    """`RESPONSES_STORE_TTL_SECONDS` decides when a response expires."""
    settings.RESPONSES_STORE_TTL_SECONDS = 100
    bounded = user.turn("bounded")
    settings.RESPONSES_STORE_TTL_SECONDS = 0
    unbounded = user.turn("unbounded")
    soon = Now() + timedelta(seconds=101)
    assert Response.objects.filter(public_id=bounded, expires_at__gt=Now(), expires_at__lt=soon).exists()
    assert Response.objects.get(public_id=unbounded).expires_at is None


def test_an_unstored_response_leaves_no_content(user: ApiUser) -> None:
    """`store: false` leaves a usage record and nothing else, in any table."""
    user.turn("do not keep this", store=False)
    assert not Response.objects.exists()
    assert not Item.objects.exists()
    assert not Turn.objects.exists()
    assert UsageRecord.objects.count() == 1
