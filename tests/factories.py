"""Database rows as the server writes them, made without a server, through its own services where possible."""

from typing import Any

import orjson
from django.utils import timezone

from responses_api.ids import new_id
from responses_api.models import ApiKey, Process, Project, Response, UsageRecord
from responses_api.protocol import initial_response, parse_create, sent_items
from responses_api.services.accounts.create_project import create_project
from responses_api.services.jobs.finish_response import Ending, finish_response
from responses_api.services.jobs.leases import Lease
from responses_api.services.processes.announce_process import Announcement, announce_models, announce_process

MODEL = "scripted"
WORKER = "worker_test"


def make_project(name: str = "team") -> Project:
    """Get or create the project of that name."""
    return Project.objects.filter(name=name).first() or create_project(name=name)


def start_response(
    text: Any, *, project: Project, key: ApiKey | None = None, previous: Response | None = None, **parameters: Any
) -> Response:
    """A response that a worker is generating."""
    payload = {"model": MODEL, "input": text, **parameters}
    request = parse_create(payload)
    public_id = new_id("resp_")
    created = timezone.now()
    body = initial_response(
        request, id=public_id, created_at=int(created.timestamp()), model=MODEL, temperature=0.5, top_p=0.9, store=True
    )
    return Response.objects.create(
        public_id=public_id,
        project=project,
        key=key,
        model=MODEL,
        status="in_progress",
        worker=WORKER,
        attempt=1,
        created_at=created,
        parent_id=previous.turn_id if previous else None,
        previous_response_id=previous.public_id if previous else "",
        request=orjson.dumps(payload).decode(),
        body=orjson.dumps(body).decode(),
    )


def answer(row: Response, text: str, *, status: str = "completed") -> Response:
    """End a response, with this text as its output."""
    request = parse_create(orjson.loads(row.request))
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"id": new_id("msg_"), "type": "message", "role": "assistant", "status": status, "content": [part]}
    body: Any = {**row.body_dict(), "status": status, "output": [message]}
    ending = Ending(
        response=body,
        input_items=sent_items(request, response_id=row.public_id, used=()),
        input_tokens=1234,
        cached_tokens=1000,
        output_tokens=41,
        first_token_ms=1000,
    )
    lease = Lease(response=row.pk, public_id=row.public_id, worker=WORKER, attempt=1)
    assert finish_response(lease=lease, ending=ending)
    UsageRecord.objects.filter(response_id=row.public_id).update(duration_ms=2000)
    return Response.objects.get(pk=row.pk)


def make_response(text: Any, said: str, *, project: Project, status: str = "completed", **kwargs: Any) -> Response:
    """A response that has ended."""
    return answer(start_response(text, project=project, **kwargs), said, status=status)


def make_announcement(model: str = MODEL, **fields: Any) -> dict[str, Any]:
    """The announcement of a served model."""
    return {
        "name": model,
        "aliases": [],
        "digest": "sha256:00",
        "context_length": 4096,
        "temperature": 1.0,
        "top_p": 1.0,
        "created": 1,
        "weights": "fp32",
        "source": "test",
        "size_bytes": 1,
        **fields,
    }


def make_worker(name: str = WORKER, model: str = MODEL) -> None:
    """A live worker that serves one model."""
    announcement = make_announcement(model, aliases=["also"])
    announce_models([announcement])
    announce_process(Announcement(id=name, kind=Process.Kind.WORKER, slots=4, models=[announcement]))
