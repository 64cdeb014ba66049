"""The store's totals: as recorded_totals, and counted from all rows."""

import orjson

from responses_api.models import Conversation, Item, Response, Turn
from responses_api.models.store.response import ACTIVE
from responses_api.selectors.store_totals import StoreTotals, get_store_totals


def true_totals(project_id: int | None = None) -> tuple[int, int, int, int]:
    """The totals that all rows add up to."""
    scope = {} if project_id is None else {"project_id": project_id}
    ended = Response.objects.filter(**scope).exclude(status__in=ACTIVE)
    conversation_bytes = items = 0
    for row in Conversation.objects.filter(**scope).select_related("turn"):
        conversation_bytes += len(orjson.dumps(row.metadata))
        turn: Turn | None = row.turn
        while turn is not None:
            items += sum(item.size for item in turn.items.all())
            turn = turn.parent
    texts = [*Item.objects.filter(**scope).values_list("payload", flat=True), *ended.values_list("body", flat=True)]
    response_bytes = sum(len(text.encode()) for text in texts) - items
    return ended.count(), response_bytes, Conversation.objects.filter(**scope).count(), conversation_bytes + items


def recorded_totals(project_id: int | None = None) -> tuple[int, int, int, int]:
    """The recorded_totals totals."""
    totals: StoreTotals = get_store_totals(project_id)
    return totals.responses, totals.response_bytes, totals.conversations, totals.conversation_bytes
