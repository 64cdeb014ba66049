"""References and blobs of a request are measured, and refused if too large, before any is loaded."""

from typing import Any
from unittest.mock import patch

import orjson
import pytest

from responses_api.caller import Caller
from responses_api.errors import EntryTooLarge, InvalidValue, NotFound, RequestTooLarge
from responses_api.models import Response
from responses_api.protocol import parse_create
from responses_api.protocol.items.compaction import Compacted
from responses_api.protocol.requests.conversations import parse_create_conversation, parse_create_items
from responses_api.selectors.history import items_by_key
from responses_api.services.accounts.create_key import create_key
from responses_api.services.admission import take_input
from responses_api.services.admission.count_input_tokens import MAX_BYTES, ask
from responses_api.services.admission.create_compaction import create_compaction
from responses_api.services.admission.create_response import create_response
from responses_api.services.prompts.assemble_history import assembling
from responses_api.services.prompts.blobs import check_blobs, expand_history, seal_compaction, seal_reasoning
from responses_api.services.store.create_conversation import create_conversation
from responses_api.services.store.edit_conversation_items import add_conversation_items
from tests.factories import MODEL
from tests.turns import ApiUser

pytestmark = pytest.mark.django_db

SIZE = 100_000


def large_item(user: ApiUser) -> str:
    """The id of a stored item of slightly more than :data:`SIZE` bytes."""
    row = Response.objects.get(public_id=user.turn("a" * SIZE))
    assert row.turn is not None
    return row.turn.items.get(size__gt=SIZE).wire_id


def refer(item_id: str, times: int) -> list[dict[str, Any]]:
    return [{"type": "item_reference", "id": item_id}] * times


def create(user: ApiUser, payload: dict[str, Any]) -> Response:
    return create_response(caller=user.caller, public_id="resp_new", payload=payload, reader="test")


def compact(user: ApiUser, payload: dict[str, Any]) -> None:
    create_compaction(caller=user.caller, public_id="resp_new", payload=payload, reader="test")


def test_references_are_measured_before_they_are_loaded(user: ApiUser, settings: Any) -> None:
    """On every route that takes them, by its own limit; and nothing is left behind."""
    wanted = refer(large_item(user), 1 + MAX_BYTES // SIZE)
    settings.RESPONSES_ENTRY_MAX_BYTES = settings.RESPONSES_ASSEMBLY_MAX_BYTES = MAX_BYTES
    before = Response.objects.count()
    with patch.object(take_input, "items_by_key", side_effect=AssertionError("loaded")):
        with pytest.raises(EntryTooLarge, match="RESPONSES_ENTRY_MAX_BYTES"):
            create(user, {"input": wanted})
        with pytest.raises(RequestTooLarge, match="RESPONSES_ASSEMBLY_MAX_BYTES"):
            create(user, {"input": wanted, "store": False})
        with pytest.raises(RequestTooLarge, match="RESPONSES_BACKGROUND_INPUT_MAX_BYTES"):
            create(user, {"input": wanted[:30], "background": True})
        with pytest.raises(RequestTooLarge, match="RESPONSES_ASSEMBLY_MAX_BYTES"):
            compact(user, {"model": MODEL, "input": wanted})
        with pytest.raises(RequestTooLarge, match="counted at once"):
            ask(user.caller, {"input": wanted})
    assert Response.objects.count() == before


def test_an_item_is_loaded_once_however_often_it_is_referenced(user: ApiUser) -> None:
    """Of several items with one id, which clients can make, only the newest is loaded."""
    item_id = large_item(user)
    older = [{"type": "message", "id": "msg_mine", "role": "user", "content": "old" * SIZE}]
    user.begin(older).end()
    user.begin([{"type": "message", "id": "msg_mine", "role": "user", "content": "new"}]).end()
    payload = {"input": [*refer(item_id, 5), *refer("msg_mine", 2)], "store": False}
    with patch.object(take_input, "items_by_key", wraps=items_by_key) as loaded:
        row = create(user, payload)
    ((keys,), _) = loaded.call_args
    assert len(keys) == 2
    sent = parse_create(orjson.loads(row.request)).input
    assert [type(item).__name__ for item in sent] == ["InputMessage"] * 7
    assert row.request.count("a" * SIZE) == 5
    assert "oldold" not in row.request


def test_the_content_of_blobs_is_counted_and_not_decompressed(user: ApiUser, settings: Any) -> None:
    """Many small blobs with much content: all are checked; only the last one counts and is opened."""
    owner = user.caller.scope
    blob = seal_compaction(Compacted(summary="s" * 5_000_000, items=()), owner=owner)
    assert len(blob) < 8_000
    items = [{"type": "compaction", "encrypted_content": blob}] * 300
    assert 5_000_000 < check_blobs(items, owner=owner) < 5_100_000
    small = {"type": "compaction", "encrypted_content": seal_compaction(Compacted(summary="s", items=()), owner=owner)}
    assert check_blobs([*items, small], owner=owner) < 100
    with assembling(owner) as assembly:
        assert len(expand_history([*items, small], owner=owner, take=assembly.add)) == 1
        assert assembly.size < 100
    settings.RESPONSES_ASSEMBLY_MAX_BYTES = 1_000_000
    user.announce()
    for call in (
        lambda: create(user, {"input": items[:3]}),
        lambda: compact(user, {"model": MODEL, "input": items[:3]}),
        lambda: ask(user.caller, {"input": items[:3]}),
    ):
        with pytest.raises(RequestTooLarge, match="RESPONSES_ASSEMBLY_MAX_BYTES"):
            call()
    with assembling(owner) as assembly, pytest.raises(RequestTooLarge):
        expand_history(items, owner=owner, take=assembly.add)


def test_the_content_of_sealed_reasoning_is_counted_too(user: ApiUser, settings: Any) -> None:
    """However often it is sent; blobs that this server cannot open count as empty."""
    owner = user.caller.scope
    items = [{"type": "reasoning", "summary": [], "encrypted_content": seal_reasoning("t" * 1_000_000, owner=owner)}]
    assert check_blobs(items * 20, owner=owner) == 20_000_000
    assert check_blobs(items * 20, owner="project-0") == 0
    assert check_blobs([{**items[0], "content": [{"type": "reasoning_text", "text": "t"}]}], owner=owner) == 0
    settings.RESPONSES_ASSEMBLY_MAX_BYTES = 10_000_000
    with pytest.raises(RequestTooLarge):
        create(user, {"input": [*items * 11, {"role": "user", "content": "x"}]})


@pytest.mark.parametrize("owner", ["project-0", "altered"])
def test_a_conversation_takes_no_blob_that_cannot_be_opened(user: ApiUser, owner: str) -> None:
    """When it is created and when items are added; blobs of its own project are accepted."""
    mine = seal_compaction(Compacted(summary="s", items=()), owner=user.caller.scope)
    wrong = mine[:-8] + "AAAAAAA=" if owner == "altered" else seal_compaction(Compacted("s", ()), owner=owner)

    def body(blob: str) -> dict[str, Any]:
        return {"items": [{"role": "user", "content": "hi"}, {"type": "compaction", "encrypted_content": blob}]}

    made = create_conversation(caller=user.caller, request=parse_create_conversation(body(mine)))

    def add(blob: str) -> None:
        add_conversation_items(
            caller=user.caller, conversation_id=made.public_id, request=parse_create_items(body(blob))
        )

    add(mine)
    for call in (
        lambda: create_conversation(caller=user.caller, request=parse_create_conversation(body(wrong))),
        lambda: add(wrong),
    ):
        with pytest.raises(InvalidValue) as refused:
            call()
        assert refused.value.param == "items[1].encrypted_content"


def test_blobs_belong_to_a_key_with_isolation_by_key(user: ApiUser, settings: Any) -> None:
    """Another key of the project can't use them, nor can open access."""
    settings.RESPONSES_ISOLATION = "key"
    mine, other = (
        Caller(project=user.caller.project, key=create_key(project=user.caller.project, name=name)[0])
        for name in ("mine", "other")
    )
    item = {"type": "compaction", "encrypted_content": seal_compaction(Compacted("s", ()), owner=mine.scope)}
    assert ask(mine, {"input": [item]}).scope == mine.scope
    for caller in (other, user.caller):
        with pytest.raises(InvalidValue):
            ask(caller, {"input": [item]})
    with pytest.raises(NotFound):
        ask(other, {"input": refer("msg_none", 1)})


@pytest.mark.parametrize("named", ["instructions", "tools"])
def test_the_fields_that_streams_repeat_are_bounded(user: ApiUser, settings: Any, named: str) -> None:
    """Instructions and tools are in every event of the response: if too large they are refused, by name."""
    settings.RESPONSES_ECHO_MAX_BYTES = 10_000
    large = "i" * 9_000
    tools = [{"type": "function", "name": "f", "description": large, "parameters": None}]
    body = {"input": "hi", "instructions": large, "tools": tools}
    with pytest.raises(RequestTooLarge, match="RESPONSES_ECHO_MAX_BYTES") as refused:
        create(user, {**body, named: body[named] if named == "tools" else large * 2})
    assert refused.value.param == named or named == "tools"
    create(user, {"input": "hi" * 20_000, "instructions": large})
