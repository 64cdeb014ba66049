"""Claims and leases: one worker owns a row, late writes are refused, and lost rows are recovered."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from inference.scripted.tokenizer import ScriptedTokenizer
from responses_api.caller import Caller
from responses_api.models import Process, Response, UsageRecord
from responses_api.services.accounts.create_key import create_key
from responses_api.services.accounts.create_project import create_project
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.cancel_response import abandon_response
from responses_api.services.jobs.finish_response import Ending, finish_response
from responses_api.services.jobs.leases import Lease, claim_responses, renew_leases
from responses_api.services.jobs.recover_jobs import orphaned_jobs, recover_jobs
from responses_api.services.processes.announce_process import Announcement, announce_process
from responses_api.worker.generation.prepare_generation import Prepared, prepare_generation
from tests.factories import MODEL
from tests.turns import INFO, ApiUser

pytestmark = pytest.mark.django_db


def queue(user: ApiUser, text: str = "hello", *, reader: str = "web_1") -> str:
    """Make a waiting row. Returns its public id."""
    payload = {"input": text}
    public_id = new_response_id()
    create_response(caller=user.caller, public_id=public_id, payload=payload, reader=reader)
    return public_id


def ending_of(row: Response) -> Ending:
    """The end of a claimed row with a completed answer."""
    prepared = prepare_generation(row=row, request_id="r", tokenizer=ScriptedTokenizer(), info=INFO, cache_scope="test")
    assert isinstance(prepared, Prepared)
    response: Any = {**prepared.body, "status": "completed", "output": []}
    return Ending(response=response, input_items=prepared.input_items)


def lease_of(row: Response) -> Lease:
    return Lease(response=row.pk, public_id=row.public_id, worker=row.worker, attempt=row.attempt)


def test_rows_are_claimed_once_and_in_order(user: ApiUser) -> None:
    """Oldest first, background separate from interactive, each row by one worker that serves its model."""
    ids = [queue(user, str(number)) for number in range(4)]
    Response.objects.filter(public_id=ids[0]).update(priority=1, background=True)
    assert claim_responses(worker="a", models=["another"], limit=10) == []
    assert claim_responses(worker="a", models=[], limit=10) == []
    first = claim_responses(worker="a", models=[MODEL], limit=2)
    second = claim_responses(worker="b", models=["another", MODEL], limit=10)
    assert [row.public_id for row in first] == ids[1:3]
    assert [row.public_id for row in second] == [ids[3]]
    jobs = claim_responses(worker="b", models=[MODEL], limit=10, background=True)
    assert [row.public_id for row in jobs] == [ids[0]]
    assert claim_responses(worker="c", models=[MODEL], limit=10) == []
    assert claim_responses(worker="c", models=[MODEL], limit=10, background=True) == []
    assert {row.attempt for row in (*first, *second, *jobs)} == {1}
    stored = Response.objects.get(public_id=ids[1])
    assert stored.worker == "a"
    assert Response.objects.filter(
        public_id=ids[1], lease_until__gt=Now(), lease_until__lt=Now() + timedelta(60)
    ).exists()


def test_a_worker_that_lost_its_lease_writes_nothing(user: ApiUser) -> None:
    """Once a second attempt owns the row, the first one's end is refused and the second one's is stored."""
    queue(user)
    (row,) = claim_responses(worker="a", models=[MODEL], limit=1)
    Response.objects.update(worker="", lease_until=None)
    (again,) = claim_responses(worker="b", models=[MODEL], limit=1)
    assert again.attempt == 2
    assert not finish_response(lease=lease_of(row), ending=ending_of(row))
    assert Response.objects.get().status == "queued"
    assert finish_response(lease=lease_of(again), ending=ending_of(again))
    assert not finish_response(lease=lease_of(again), ending=ending_of(again))
    assert Response.objects.get().status == "completed"
    assert UsageRecord.objects.count() == 1


def test_renewal_lists_owned_rows_and_cancellations(user: ApiUser) -> None:
    """It extends the worker's leases on the rows it knows, and lists them with their attempts."""
    keep, cancel, unknown = queue(user), queue(user), queue(user)
    rows = {row.public_id: row for row in claim_responses(worker="a", models=[MODEL], limit=3)}
    del rows[unknown]
    Response.objects.update(lease_until=Now() - timedelta(seconds=1))
    abandon_response(public_id=cancel)
    owned = renew_leases(worker="a", rows=[row.pk for row in rows.values()])
    assert owned.attempts == {row.pk: 1 for row in rows.values()}
    assert owned.cancel_requested == {rows[cancel].pk}
    assert rows[keep].pk not in owned.cancel_requested
    assert Response.objects.filter(lease_until__gt=Now()).count() == 2
    assert renew_leases(worker="b", rows=[row.pk for row in rows.values()]).attempts == {}
    assert recover_jobs() == 1
    assert not Response.objects.filter(public_id=unknown).exists()


def test_a_waiting_row_whose_reader_left_is_deleted_at_once(user: ApiUser) -> None:
    """It is unowned, so no worker has to be told."""
    abandon_response(public_id=queue(user))
    assert not Response.objects.exists()


def test_recovery_removes_rows_that_no_process_will_end(user: ApiUser) -> None:
    """Rows with expired leases and of dead readers; owned rows and those with a live reader stay."""
    announce_process(Announcement(id="web_live", kind=Process.Kind.WEB))
    held = queue(user, reader="web_live")
    claim_responses(worker="a", models=[MODEL], limit=1)
    lost = queue(user, reader="web_live")
    claim_responses(worker="b", models=[MODEL], limit=1)
    waiting = queue(user, reader="web_live")
    forgotten = queue(user, reader="web_dead")
    Response.objects.filter(public_id=lost).update(lease_until=Now() - timedelta(seconds=1))
    Response.objects.update(created_at=Now() - timedelta(hours=1))
    assert recover_jobs() == 2
    left = set(Response.objects.values_list("public_id", flat=True))
    assert left == {held, waiting}
    assert forgotten not in left


def test_a_running_job_without_a_reader_is_found(user: ApiUser) -> None:
    """Its worker stops it, as nobody will read the answer."""
    queue(user, reader="web_dead")
    (row,) = claim_responses(worker="a", models=[MODEL], limit=1)
    assert orphaned_jobs(worker="a") == []
    Response.objects.update(created_at=Now() - timedelta(hours=1))
    assert orphaned_jobs(worker="a") == [row.pk]
    announce_process(Announcement(id="web_dead", kind=Process.Kind.WEB))
    assert orphaned_jobs(worker="a") == []


def test_interactive_requests_of_projects_and_keys_take_turns(user: ApiUser) -> None:
    """A key with many waiting requests delays neither another key of its project nor another project."""
    many = [queue(user, str(number)) for number in range(4)]
    key = create_key(project=user.caller.project, name="other")[0]
    second = queue(ApiUser(caller=Caller(project=key.project, key=key), worker=user.worker))
    elsewhere = Caller(project=create_project(name="elsewhere"))
    third = queue(ApiUser(caller=elsewhere, worker=user.worker))
    claimed = {row.public_id for row in claim_responses(worker="a", models=[MODEL], limit=3)}
    assert claimed == {many[0], second, third}
