"""Admission of `POST /responses/compact`: a job like every generation, of which nothing is kept."""

from typing import Any

import orjson
from django.db.models.functions import Now
from django.utils import timezone

from responses_api.caller import Caller
from responses_api.models import Response
from responses_api.protocol.compaction import CompactRequest, initial_compaction
from responses_api.protocol.json_writer import as_text, write_json
from responses_api.selectors.models import resolve_model
from responses_api.services.prompts.assemble_history import Assembly, assembling
from responses_api.services.store.move_conversation import history_bytes
from responses_api.services.store.open_response import open_previous

from .create_response import queue_job
from .take_input import take_input


def create_compaction(
    *, caller: Caller, request: CompactRequest, public_id: str, payload: dict[str, Any], reader: str
) -> None:
    """Admit a request; raises an :class:`ApiError`, and then nothing is left behind."""
    with assembling(caller.scope) as assembly:
        _admit(caller=caller, request=request, public_id=public_id, payload=payload, reader=reader, assembly=assembly)


def _admit(
    *,
    caller: Caller,
    request: CompactRequest,
    public_id: str,
    payload: dict[str, Any],
    reader: str,
    assembly: Assembly,
) -> None:
    offer = resolve_model(request.model)
    previous = None
    if request.previous_response_id is not None:
        previous = open_previous(caller=caller, response_id=request.previous_response_id)
    request, payload = take_input(
        caller=caller,
        request=request,
        payload=payload,
        assembly=assembly,
        history=history_bytes(previous.turn) if previous else 0,
    )
    now = timezone.now()
    row = Response(
        public_id=public_id,
        project=caller.project,
        key=caller.key,
        model=offer.name,
        store=False,
        parent_id=previous.turn_id if previous else None,
        previous_response_id=request.previous_response_id or "",
        request=as_text(write_json(payload)),
        body=orjson.dumps(initial_compaction(public_id, created_at=int(now.timestamp()), model=offer.name)).decode(),
        created_at=Now(),
        reader=reader,
    )
    queue_job(row, caller=caller, request=request)
