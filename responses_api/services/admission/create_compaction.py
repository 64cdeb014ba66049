"""Admission of `POST /responses/compact`: a job like every generation, but nothing of it is stored."""

from typing import Any

import orjson
from django.db.models.functions import Now
from django.utils import timezone

from responses_api.caller import Caller
from responses_api.models import Response
from responses_api.protocol.json.writer import as_text, write_json
from responses_api.protocol.objects.compaction import initial_compaction
from responses_api.protocol.requests.compact import parse_compact

from .queue_response import queue_response
from .resolve_request import resolving


def create_compaction(*, caller: Caller, payload: Any, public_id: str, reader: str) -> Response:
    """Check a request, resolve what it names, write its row and queue it.

    Raises an :class:`ApiError`, and then there is no row.
    """
    request = parse_compact(payload)
    with resolving(caller=caller, request=request, payload=payload) as resolved:
        request, payload = resolved.take_input()
        model = resolved.served.name
        created_at = int(timezone.now().timestamp())
        row = Response(
            public_id=public_id,
            project=caller.project,
            key=caller.key,
            model=model,
            store=False,
            parent=resolved.history.turn,
            previous_response_id=request.previous_response_id or "",
            request=as_text(write_json(payload)),
            body=orjson.dumps(initial_compaction(public_id, created_at=created_at, model=model)).decode(),
            created_at=Now(),
            reader=reader,
        )
        queue_response(row, caller=caller, request=request)
        return row
