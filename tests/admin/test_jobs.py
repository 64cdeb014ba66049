"""Background jobs in the admin: their state, and cancelling them."""

from typing import Any
from unittest.mock import patch

import orjson
import pytest
from django.contrib.auth.models import Permission
from django.db.models.functions import Now
from django.test import Client

from responses_api import bus
from responses_api.bus.messages import CancelRow
from responses_api.caller import Caller
from responses_api.models import Project, Response, User
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.leases import claim_responses
from tests.factories import MODEL, WORKER, make_response, make_worker, start_response

LIST = "/admin/responses_api/response/"


@pytest.fixture
def queued(project: Project) -> Response:
    """A waiting background job."""
    make_worker()
    payload = {"model": MODEL, "input": "a long story", "background": True}
    caller = Caller(project=project)
    return create_response(caller=caller, public_id=new_response_id(), payload=payload)


@pytest.fixture
def running(queued: Response) -> Response:
    """A background job that a worker owns."""
    (row,) = claim_responses(worker=WORKER, models=[MODEL], limit=1, background=True)
    return Response.objects.get(pk=row.pk)


def cancel(client: Client, *rows: Response) -> str:
    answer = client.post(LIST, {"action": "cancel_selected", "_selected_action": [row.pk for row in rows]}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_job_s_page_shows_its_state(client: Client, running: Response) -> None:
    """Claims, worker, lease, lost attempts, and the time of a cancellation request."""
    Response.objects.filter(pk=running.pk).update(attempt=3, lost_attempts=2)
    page = client.get(f"{LIST}{running.pk}/change/").content.decode()
    assert "<dt>Attempts</dt><dd>3</dd>" in page
    assert "<dt>Lost attempts</dt><dd>2</dd>" in page
    assert f"/admin/responses_api/process/{WORKER}/change/" in page
    assert "Lease until" in page
    assert "Cancel requested" not in page
    Response.objects.filter(pk=running.pk).update(cancel_requested_at=Now(), worker="worker_gone")
    page = client.get(f"{LIST}{running.pk}/change/").content.decode()
    assert "Cancel requested" in page
    assert "worker_gone" in page
    assert "(gone)" in page
    assert "It is being cancelled." in page


INPUTS: list[tuple[Any, str]] = [
    ("a long\nstory", "a long story"),
    ([{"role": "user", "content": 'said "so"'}, {"role": "user", "content": "then"}], "said &quot;so&quot;"),
    ([{"role": "user", "content": [{"type": "input_text", "text": "x" * 900}]}], "x" * 69),
]


@pytest.mark.parametrize(("sent", "shown"), INPUTS)
@pytest.mark.parametrize("page", [LIST, "/admin/"])
def test_the_input_of_a_waiting_job_is_in_the_lists(
    client: Client, queued: Response, sent: Any, shown: str, page: str
) -> None:
    """Although its items are stored only at its end."""
    request = {"model": MODEL, "instructions": 'No "input": here', "input": sent, "background": True}
    Response.objects.filter(pk=queued.pk).update(request=orjson.dumps(request).decode())
    text = client.get(page).content.decode()
    assert f'<span class="asked">{shown}' in text
    assert "0 minutes" not in text


def test_the_list_can_be_filtered_by_background(client: Client, project: Project, queued: Response) -> None:
    """Jobs only, and all others."""
    other = make_response("at once", "yes", project=project)
    for background, shown, hidden in ((1, queued, other), (0, other, queued)):
        page = client.get(f"{LIST}?background__exact={background}").content.decode()
        assert shown.public_id[:22] in page
        assert hidden.public_id[:22] not in page


def test_a_waiting_job_is_cancelled_at_once(client: Client, queued: Response) -> None:
    """It never starts."""
    assert "Cancelled: 1." in cancel(client, queued)
    queued.refresh_from_db()
    assert queued.status == "cancelled"
    assert claim_responses(worker=WORKER, models=[MODEL], limit=1, background=True) == []


def test_the_worker_of_a_running_job_is_told_to_cancel(client: Client, running: Response) -> None:
    """The job is running until its worker ends it."""
    with patch.object(bus, "publish") as publish:
        assert "Being cancelled: 1." in cancel(client, running)
    publish.assert_called_once_with(bus.process_group(WORKER), CancelRow(row=running.pk))
    running.refresh_from_db()
    assert running.cancel_requested_at is not None
    assert running.is_active


def test_nothing_else_is_cancelled(client: Client, project: Project) -> None:
    """Neither an ended job nor a foreground response."""
    ended, foreground = make_response("done", "yes", project=project), start_response("now", project=project)
    assert "Left alone: 2." in cancel(client, ended, foreground)
    foreground.refresh_from_db()
    assert (foreground.is_active, foreground.cancel_requested_at) == (True, None)


def test_view_permission_does_not_allow_cancelling(db: None, queued: Response) -> None:
    """The action is neither offered nor executed."""
    bob = User.objects.create_user("bob", password="x", is_staff=True)
    bob.user_permissions.add(Permission.objects.get(codename="view_response"))
    client = Client()
    client.force_login(bob)
    assert "cancel_selected" not in client.get(LIST).content.decode()
    cancel(client, queued)
    queued.refresh_from_db()
    assert queued.status == "queued"
