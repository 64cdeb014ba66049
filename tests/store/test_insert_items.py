"""The transaction of a turn with many items is short: on SQLite it blocks all other writers."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from responses_api.models import StoreChange, TurnItem
from responses_api.services.accounts.authenticate import default_project
from responses_api.services.store.turns import repeat_turn, write_turn

MANY = 3000
STATEMENTS = 5
"""Items, their keys, the turn and its places, each in one statement. Batches by parameters would take more."""


@pytest.mark.django_db
def test_many_items_take_few_statements_and_keep_their_order() -> None:
    """Even when a turn is repeated on a history that uses all its ids."""
    change = StoreChange(project_id=default_project().pk)
    payloads: list[Any] = [
        ({"id": f"msg_{n}", "type": "message", "content": f"é {n}"}, n % 3 == 0) for n in range(MANY)
    ]
    with CaptureQueriesContext(
        connection,
    ) as queries:
        turn = write_turn(parent=None, payloads=payloads, change=change)
    assert len(queries) <= STATEMENTS
    entries = list(TurnItem.objects.filter(turn=turn).select_related("item").order_by("position"))
    assert [(entry.item.wire(), entry.is_output) for entry in entries] == payloads
    assert [entry.position for entry in entries] == list(range(MANY))
    assert turn.history_bytes == change.response_bytes == sum(entry.item.size for entry in entries)

    again = repeat_turn(turn, parent=turn, change=change)
    copies = list(TurnItem.objects.filter(turn=again).select_related("item").order_by("position"))
    repeated: list[Any] = [copy.item.wire() for copy in copies]
    assert [item["content"] for item in repeated] == [payload["content"] for payload, _ in payloads]
    assert not {copy.item.wire_id for copy in copies} & {payload["id"] for payload, _ in payloads}
