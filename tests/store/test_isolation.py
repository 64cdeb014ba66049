"""Isolation by key: each key sees only its own responses and conversations."""

from functools import partial
from typing import Any

import pytest

from responses_api.caller import Caller, cache_scope
from responses_api.errors import (
    ApiError,
)
from responses_api.protocol.requests.conversations import parse_create_conversation
from responses_api.selectors.conversations import get_conversation
from responses_api.selectors.items import find_items
from responses_api.selectors.responses import get_response
from responses_api.services.accounts.authenticate import default_project
from responses_api.services.accounts.create_key import create_key
from responses_api.services.store.create_conversation import create_conversation
from responses_api.services.store.delete_conversation import delete_conversation
from responses_api.services.store.delete_response import delete_response
from tests.turns import ApiUser

from .people import new_conversation

pytestmark = pytest.mark.django_db


def test_a_key_sees_only_its_own_with_isolation_by_key(settings: Any) -> None:
    """Another key of the project gets the same error as for an unknown id, everywhere; so does open access."""
    settings.RESPONSES_ISOLATION = "key"
    project = default_project()
    owner, other = (
        ApiUser(caller=Caller(project=project, key=create_key(project=project, name=name)[0]), worker="w")
        for name in ("owner", "other")
    )
    owner.announce()
    response_id, conversation_id = owner.turn("secret"), new_conversation(owner, "secret")
    owner.turn("go on", previous=response_id)
    owner.turn("go on", conversation=conversation_id)

    def answer(call: Any, **options: str) -> str:
        with pytest.raises(ApiError) as error:
            call(**options)
        return f"{error.value.status} {error.value.code} {error.value.param} {error.value.message}"

    for stranger in (other, ApiUser(caller=Caller(project=project), worker="w")):
        begin = partial(stranger.begin, "x")
        for call, name, known in (
            (partial(get_response, caller=stranger.caller), "response_id", response_id),
            (partial(delete_response, caller=stranger.caller), "response_id", response_id),
            (begin, "previous_response_id", response_id),
            (partial(get_conversation, caller=stranger.caller), "conversation_id", conversation_id),
            (partial(delete_conversation, caller=stranger.caller), "conversation_id", conversation_id),
            (begin, "conversation", conversation_id),
        ):
            unknown = known[:-1] + ("0" if known[-1] != "0" else "1")
            assert answer(call, **{name: known}).replace(known, "") == answer(call, **{name: unknown}).replace(
                unknown, ""
            )
    settings.RESPONSES_ISOLATION = "project"
    assert get_response(caller=other.caller, response_id=response_id)


def test_a_key_can_reference_items_of_its_own_histories(settings: Any) -> None:
    """Also of a deleted response that a later one continues, and of a conversation. No other key can."""
    project = default_project()
    owner, other = (Caller(project=project, key=create_key(project=project, name=name)[0]) for name in ("a", "b"))
    user = ApiUser(caller=owner, worker="w")
    user.announce()
    wanted = ["msg_first", "msg_second", "msg_stored", "msg_gone", "msg_unknown"]

    def message(item_id: str) -> list[dict[str, Any]]:
        return [{"role": "user", "content": "x", "id": item_id}]

    first, gone = user.begin(message("msg_first")).end(), user.begin(message("msg_gone")).end()
    user.begin(message("msg_second"), previous_response_id=first).end()
    create_conversation(caller=owner, request=parse_create_conversation({"items": message("msg_stored")}))
    for response_id in (first, gone):
        delete_response(caller=owner, response_id=response_id)
    for isolation in ("project", "key"):
        settings.RESPONSES_ISOLATION = isolation
        assert sorted(find_items(caller=owner, wire_ids=wanted)) == ["msg_first", "msg_second", "msg_stored"]
    assert find_items(caller=other, wire_ids=wanted) == {}
    assert find_items(caller=Caller(project=project), wire_ids=wanted) == {}


def test_cached_prompts_are_shared_as_responses_are(settings: Any) -> None:
    """Within a project, or per key; callers without a key share only among themselves."""
    shared = {cache_scope(project_id=1, key_id=key) for key in (1, 2, None)}
    assert len(shared) == 1
    assert cache_scope(project_id=2, key_id=1) not in shared
    settings.RESPONSES_ISOLATION = "key"
    assert len({cache_scope(project_id=1, key_id=key) for key in (1, 2, None)}) == 3
