"""Background jobs that no worker owns: freed, ended, claimed in turns."""

from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db.models.functions import Now

from inference.types import Chunk
from responses_api.caller import Caller
from responses_api.models import Checkpoint, Conversation, EventBatch, Project, Response
from responses_api.models.store.response import ACTIVE
from responses_api.protocol.requests.conversations import parse_create_conversation
from responses_api.selectors.responses import wire_response
from responses_api.services.accounts.delete_project import delete_project
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.cancel_response import request_cancellation
from responses_api.services.jobs.end_job import end_unowned
from responses_api.services.jobs.event_log import (
    Flush,
    LogCursor,
    all_batches,
    append_batches,
    decoded_events,
    expire_event_logs,
    is_streamable,
    mark_in_progress,
    read_page,
)
from responses_api.services.jobs.leases import Lease, claim_responses, release_lease
from responses_api.services.jobs.recover_jobs import recover_background_jobs
from responses_api.services.processes.expire_responses import expire_conversations
from responses_api.services.store.create_conversation import create_conversation
from responses_api.streaming import ResponseBuilder, encode_event
from tests.factories import MODEL
from tests.streaming.streams import check_grammar
from tests.turns import ApiUser

pytestmark = pytest.mark.django_db


def queue(user: ApiUser, **fields: Any) -> Response:
    """A waiting background row."""
    payload = {"input": "hello", "background": True, **fields}
    return create_response(caller=user.caller, public_id=new_response_id(), payload=payload)


def claim(limit: int = 10) -> list[Response]:
    return claim_responses(worker="a", models=[MODEL], limit=limit, background=True)


def lease_of(row: Response) -> Lease:
    return Lease(response=row.pk, public_id=row.public_id, worker=row.worker, attempt=row.attempt)


def begin(row: Response, text: str) -> None:
    """Persist the events of a claimed job up to this text."""
    lease, builder = lease_of(row), ResponseBuilder(row.body_dict(), queued=True)
    cursor = LogCursor.after(all_batches(row.pk))
    events = [encode_event(event) for event in [*builder.start(), *builder.text(text)]]
    assert mark_in_progress(lease, cursor.batch(events[2:3], response=row.pk, attempt=row.attempt))
    chunks = [Chunk(request_id="", started=True), Chunk(request_id="", text=text, tokens=(1, 2))]
    batch = cursor.batch(events[3:], response=row.pk, attempt=row.attempt, feeds=[chunks])
    assert append_batches([Flush(lease, [batch])]) == set()


def lose(row: Response) -> None:
    """Let the row's lease expire."""
    Response.objects.filter(pk=row.pk).update(lease_until=Now() - timedelta(seconds=1))


def test_a_lost_job_is_freed_for_the_next_worker(user: ApiUser) -> None:
    """A job that a worker still owns is not."""
    queue(user)
    queue(user)
    lost, held = claim()
    lose(lost)
    assert recover_background_jobs()
    assert not recover_background_jobs()
    (again,) = claim()
    assert (again.pk, again.attempt, again.lost_attempts) == (lost.pk, 2, 0)
    assert Response.objects.get(pk=held.pk).attempt == 1


def test_a_job_that_is_lost_again_and_again_fails(user: ApiUser) -> None:
    """After three lost attempts without a new token. Its stream closes the items that it opened."""
    row = queue(user)
    for loss in range(5):
        (claimed,) = claim()
        if loss == 0:
            begin(claimed, "so far")
        elif loss != 2:  # it was only claimed
            assert mark_in_progress(lease_of(claimed), None)
        lose(claimed)
        assert recover_background_jobs() == (loss < 4)
    ended = Response.objects.get(pk=row.pk)
    assert ended.status == "failed"
    final: Any = wire_response(ended)
    assert final["error"]["code"] == "server_error"
    events: list[Any] = [*decoded_events(all_batches(row.pk))]
    check_grammar(events)
    assert events[-1]["response"] == final
    assert final["output"][0]["status"] == "incomplete"
    assert not Checkpoint.objects.exists()


def test_a_job_in_the_queue_is_cancelled_at_once(user: ApiUser) -> None:
    """It never starts, and its input can still be read."""
    row = queue(user)
    cancelled = request_cancellation(caller=user.caller, response_id=row.public_id)
    assert cancelled.status == "cancelled"
    assert claim() == []
    assert [event["type"] for event in decoded_events(all_batches(row.pk))][1:] == ["response.queued", "error"]
    assert request_cancellation(caller=user.caller, response_id=row.public_id).status == "cancelled"
    assert wire_response(cancelled)["status"] == "cancelled"


def test_an_owned_job_is_cancelled_by_its_worker(user: ApiUser) -> None:
    """If the worker is lost, the sweep ends the job."""
    queue(user)
    (row,) = claim()
    begin(row, "so far")
    assert request_cancellation(caller=user.caller, response_id=row.public_id).status == "in_progress"
    assert not recover_background_jobs()
    assert Response.objects.get().status == "in_progress"
    lose(row)
    assert not recover_background_jobs()
    assert Response.objects.get().status == "cancelled"
    events: list[Any] = [*decoded_events(all_batches(row.pk))]
    check_grammar(events)
    assert events[-1]["code"] == "response_cancelled"


def test_a_job_that_waits_too_long_fails(user: ApiUser, settings: Any) -> None:
    settings.RESPONSES_BACKGROUND_TIMEOUT_SECONDS = 60
    row = queue(user)
    recover_background_jobs()
    assert Response.objects.get().status in ACTIVE
    Response.objects.update(created_at=Now() - timedelta(seconds=61))
    recover_background_jobs()
    final: Any = wire_response(Response.objects.get(pk=row.pk))
    assert (final["status"], final["error"]["code"]) == ("failed", "server_error")
    assert "longer than this server allows" in final["error"]["message"]


def test_a_worker_that_lost_the_lease_ends_nothing(user: ApiUser) -> None:
    """A released job may belong to another; an owned one can't be ended by others."""
    queue(user)
    (row,) = claim()
    assert not end_unowned(row.pk, outcome="cancelled")
    assert release_lease(lease_of(row))
    assert not release_lease(lease_of(row))
    assert end_unowned(row.pk, outcome="cancelled")
    assert not end_unowned(row.pk, outcome="cancelled")


def test_a_conversation_outlives_the_job_that_continues_it(user: ApiUser) -> None:
    """The job can add its turn; the time to live counts from then on."""
    conversation = create_conversation(caller=user.caller, request=parse_create_conversation({}))
    queue(user, conversation=conversation.public_id)
    Conversation.objects.update(expires_at=Now() - timedelta(seconds=1))
    assert expire_conversations() == 0
    Response.objects.update(status="completed")
    assert expire_conversations() == 1


def test_projects_take_turns(user: ApiUser) -> None:
    """A project that queues many does not delay one that queues a single job; running jobs count too."""
    for _ in range(20):
        queue(user)
    claim(4)
    other = ApiUser(caller=Caller(project=Project.objects.create(name="other")), worker=user.worker)
    mine = queue(other)
    second = queue(other)
    claimed = claim(4)
    assert {mine.pk, second.pk} < {row.pk for row in claimed}
    assert len({row.project_id for row in claimed}) == 2


def test_events_stay_for_a_while_after_the_end(user: ApiUser, settings: Any) -> None:
    settings.RESPONSES_EVENT_TTL_SECONDS = 60
    row = queue(user)
    assert end_unowned(row.pk, outcome="cancelled")
    assert is_streamable(Response.objects.get())
    assert expire_event_logs() == 0
    Response.objects.update(completed_at=Now() - timedelta(seconds=61))
    assert not is_streamable(Response.objects.get())
    assert expire_event_logs() == 2
    assert Response.objects.get().status == "cancelled"


def test_a_project_is_deleted_with_its_jobs(user: ApiUser) -> None:
    queue(user)
    (row,) = claim()
    begin(row, "so far")
    Checkpoint.objects.create(response=row, digest="d", version=1, prompt="[1]")
    delete_project(project=user.caller.project)
    assert not EventBatch.objects.exists()
    assert not Checkpoint.objects.exists()


def test_an_end_that_is_persisted_meanwhile_is_still_read(user: ApiUser) -> None:
    """Another process may persist the last event between the queries for events and for the end."""
    row = queue(user)
    queries_of_the_end: list[dict[str, Any]] = []

    def end_meanwhile(*arguments: Any, **fields: Any) -> Any:
        if "is_end" in fields and not queries_of_the_end:
            queries_of_the_end.append(fields)
            assert end_unowned(row.pk, outcome="cancelled")
        return find(*arguments, **fields)

    find = EventBatch.objects.filter
    with patch.object(EventBatch.objects, "filter", end_meanwhile):
        page = read_page(row.pk, 2)
    assert queries_of_the_end
    assert (page.events, page.is_end) == ([], False)
    assert [kind for kind, _ in read_page(row.pk, 2).events] == ["error"]
    assert read_page(row.pk, 3).is_end
