"""``GET /responses/{id}/input_items``."""

import orjson

from responses_api.models import Response
from responses_api.protocol import ListQuery, restore_create, sent_ids, sent_items
from responses_api.protocol.objects import ItemList

from .history import used_ids
from .item_pages import Place, Take, history_places, item_page, unbounded


def list_input_items(row: Response, *, query: ListQuery, take: Take = unbounded) -> ItemList:
    """One page of a response's whole input history, without its output. ``take`` gets its bytes before it is loaded."""
    if row.is_active:
        return item_page(running_places(row, query), query=query, take=take)
    places = history_places(
        row.turn_id, query=query, after=query.after, limit=query.limit + 1, without_output_of=row.turn_id
    )
    return item_page(places, query=query, take=take)


def running_places(row: Response, query: ListQuery) -> list[Place]:
    """The places of an active job: its history, then the items of its request with the ids that they will be stored
    under.
    """
    request = restore_create(row.request)
    sent = sent_items(request, response_id=row.public_id, used=used_ids(row.parent_id, sent_ids(request)))
    if query.order == "desc":
        sent.reverse()
    ids, after, limit = [item["id"] for item in sent], query.after, query.limit + 1
    if after in ids:
        own, after = sent[ids.index(after) + 1 :], None
        reads_history = query.order == "desc"
    else:
        own = sent if after is None or query.order == "asc" else []
        reads_history = True
    history = history_places(row.parent_id, query=query, after=after, limit=limit) if reads_history else []
    unstored = [Place(len(orjson.dumps(item)), item=item) for item in own[:limit]]
    return ([*history, *unstored] if query.order == "asc" else [*unstored, *history])[:limit]
