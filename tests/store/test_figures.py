"""The totals that the store's limits use stay correct, whatever happens to the store."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.utils import timezone

from responses_api.models import Conversation, Response, StoreChange, Turn
from responses_api.protocol import parse_list_query
from responses_api.protocol.requests.conversations import parse_create_items
from responses_api.selectors.conversations import list_conversation_items
from responses_api.services.accounts.delete_project import delete_project
from responses_api.services.processes.expire_responses import expire_responses
from responses_api.services.store.delete_conversation import delete_conversation
from responses_api.services.store.delete_response import delete_response
from responses_api.services.store.edit_conversation_items import add_conversation_items, delete_conversation_item
from responses_api.services.store.store_changes import add_up_changes
from tests.totals import recorded_totals, true_totals
from tests.turns import ApiUser, RunningTurn

from .people import new_conversation, other_project

pytestmark = pytest.mark.django_db

OLDEST_FIRST = parse_list_query([("order", "asc"), ("limit", "100")])


@dataclass(kw_only=True)
class RandomUser:
    """A user user does random operations on the store."""

    user: ApiUser
    chance: random.Random
    running: list[RunningTurn] = field(default_factory=list)

    def own(self, rows: Any) -> list[str]:
        return list(rows.filter(project=self.user.caller.project).values_list("public_id", flat=True))

    def text(self) -> str:
        return self.chance.choice("aäß") * self.chance.randrange(1, 300)

    def any_conversation(self) -> str:
        known = self.own(Conversation.objects)
        return self.chance.choice(known) if known else new_conversation(self.user)

    def begin(self) -> None:
        item_id = self.chance.choice(["msg_a", "msg_b", f"msg_{self.chance.random()}"])
        options: dict[str, Any] = {"store": self.chance.random() < 0.8}
        responses = self.own(Response.objects.filter(status="completed"))
        if self.chance.random() < 0.5:
            options["conversation"] = self.any_conversation()
        elif responses:
            options["previous_response_id"] = self.chance.choice(responses)
        self.running.append(self.user.begin([{"role": "user", "content": self.text(), "id": item_id}], **options))

    def end(self) -> None:
        if self.running:
            ended = self.running.pop(self.chance.randrange(len(self.running)))
            ended.end(self.text(), status=self.chance.choice(["completed", "completed", "failed"]))

    def delete(self) -> None:
        responses = self.own(Response.objects.filter(status="completed"))
        if responses:
            delete_response(caller=self.user.caller, response_id=self.chance.choice(responses))

    def expire(self) -> None:
        oldest = self.own(Response.objects.filter(status="completed"))[-1:]
        Response.objects.filter(public_id__in=oldest).update(expires_at=timezone.now())
        expire_responses()
        add_up_changes()

    def converse(self) -> None:
        new_conversation(self.user, *[self.text()] * self.chance.randrange(3), note=self.text())

    def add_items(self) -> None:
        request = parse_create_items({"items": [{"role": "user", "content": self.text()}]})
        add_conversation_items(caller=self.user.caller, conversation_id=self.any_conversation(), request=request)

    def delete_item(self) -> None:
        conversation_id = self.any_conversation()
        page = list_conversation_items(caller=self.user.caller, conversation_id=conversation_id, query=OLDEST_FIRST)
        if page["data"]:
            item_id = self.chance.choice(page["data"])["id"]
            delete_conversation_item(caller=self.user.caller, conversation_id=conversation_id, item_id=item_id)

    def delete_conversation(self) -> None:
        delete_conversation(caller=self.user.caller, conversation_id=self.any_conversation())

    def step(self) -> None:
        self.user.announce()
        steps = (self.delete, self.expire, self.converse, self.add_items, self.delete_item, self.delete_conversation)
        self.chance.choice((self.begin, self.begin, self.begin, self.end, self.end, *steps))()


@pytest.mark.parametrize("seed", range(4))
def test_the_totals_stay_true(user: ApiUser, settings: Any, seed: int) -> None:
    """Whatever is created, continued, edited, deleted, expired and evicted, in any order, in several projects."""
    chance = random.Random(seed)
    random_users = [RandomUser(user=user, chance=chance) for user in (user, other_project(user))]
    settings.RESPONSES_PROJECT_MAX_ENTRIES = 8
    settings.RESPONSES_CONVERSATION_STORE_MAX_ENTRIES = 5
    for _ in range(60):
        chance.choice(random_users).step()
        assert recorded_totals() == true_totals()
    for random_user in random_users:
        assert recorded_totals(random_user.user.caller.project.pk) == true_totals(random_user.user.caller.project.pk)
    add_up_changes()
    assert StoreChange.objects.count() <= len(random_users)
    assert recorded_totals() == true_totals()
    for turn in Turn.objects.all():
        before = 0 if turn.parent is None else turn.parent.history_bytes
        assert turn.history_bytes == before + sum(item.size for item in turn.items.all())
    delete_project(project=random_users[1].user.caller.project)
    assert recorded_totals() == true_totals()
