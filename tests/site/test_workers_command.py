"""`manage.py workers`: the live workers, for people and for programs."""

import io
import json
import os
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db.models.functions import Now

from responses_api.models import Process
from responses_api.services.processes.announce_process import Announcement, announce_process
from tests.factories import make_project, make_worker, start_response

pytestmark = pytest.mark.django_db

MODELS = ("a-model-with-a-name-that-no-list-may-cut", "another-model-with-a-name-that-no-list-may-cut")


def workers(*arguments: str) -> str:
    out = io.StringIO()
    call_command("workers", *arguments, stdout=out)
    return out.getvalue()


def test_without_a_worker_one_line_says_so() -> None:
    """A web process does not count, nor does a worker without recent heartbeats."""
    announce_process(Announcement(id="web", kind=Process.Kind.WEB))
    make_worker("gone")
    Process.objects.filter(pk="gone").update(heartbeat_at=Now() - timedelta(hours=1))
    assert workers().splitlines() == ["No worker is alive. `make serve`, or a team's worker process, starts one."]
    assert json.loads(workers("--json")) == []


def test_each_worker_has_a_line() -> None:
    """With its host, models and load."""
    for number, model in enumerate(MODELS):
        make_worker(f"worker_{number}", model)
        Process.objects.filter(pk=f"worker_{number}").update(host=f"mac-{number}.example.com")
    row = start_response("hi", project=make_project())
    row.worker, row.model = "worker_1", MODELS[1]
    row.save(update_fields=["worker", "model"])
    head, first, second = workers().splitlines()
    assert head.split() == ["Host", "PID", "Models", "Slots", "Running", "Waiting", "Since", "Last", "heard", "of"]
    assert first.split()[:6] == ["mac-0.example.com", str(os.getpid()), MODELS[0], "4", "0", "0"]
    assert second.split()[:6] == ["mac-1.example.com", str(os.getpid()), MODELS[1], "4", "1", "0"]
    listed = json.loads(workers("--json"))
    assert [(one["host"], one["models"], one["running"]) for one in listed] == [
        ("mac-0.example.com", [MODELS[0]], 0),
        ("mac-1.example.com", [MODELS[1]], 1),
    ]
