"""The store's figures, as they are recorded and as a look at every row gives them."""

import orjson

from responses_api.models import Conversation, Item, Response, Turn
from responses_api.models.store.response import ACTIVE
from responses_api.selectors.store_totals import StoreTotals, get_store_totals


def true_totals(project_id: int | None = None) -> tuple[int, int, int, int]:
    """What the totals must be, by looking at every row."""
    scope = {} if project_id is None else {"project_id": project_id}
    ended = Response.objects.filter(**scope).exclude(status__in=ACTIVE)
    held = items = 0
    for row in Conversation.objects.filter(**scope).select_related("turn"):
        held += len(orjson.dumps(row.metadata))
        turn: Turn | None = row.turn
        while turn is not None:
            items += sum(item.size for item in turn.items.all())
            turn = turn.parent
    texts = [*Item.objects.filter(**scope).values_list("payload", flat=True), *ended.values_list("body", flat=True)]
    free = sum(len(text.encode()) for text in texts) - items
    return ended.count(), free, Conversation.objects.filter(**scope).count(), held + items


def recorded(project_id: int | None = None) -> tuple[int, int, int, int]:
    """What the totals are."""
    totals: StoreTotals = get_store_totals(project_id)
    return totals.responses, totals.response_bytes, totals.conversations, totals.conversation_bytes
