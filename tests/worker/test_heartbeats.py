"""Leases and announcements are renewed while everything else of a process hangs."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db.models.functions import Now

from responses_api import bus
from responses_api.bus.messages import CancelRow
from responses_api.models import Chore, Process, Response
from responses_api.services.processes import sweep as sweeping
from responses_api.services.processes.chores import release_chore, take_chore
from responses_api.worker.generation.run import Run
from responses_api.worker.hosting import ModelHost
from responses_api.worker.runtime import claimer, housekeeper
from responses_api.worker.runtime.worker import GenerationWorker

from .rows import queue, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    """Set to release everything that hangs."""
    over = threading.Event()
    yield over
    over.set()


def test_a_worker_keeps_its_leases_while_everything_else_hangs(
    worker: GenerationWorker, host: ModelHost, hang: threading.Event
) -> None:
    """The sweep, the recovery of jobs, the scan of models, the counts, a claim, and an end that is stored."""
    hung: set[str] = set()

    def hanging(name: str) -> Any:
        def wait(*_arguments: Any, **_options: Any) -> Any:
            hung.add(name)
            hang.wait(20)
            raise RuntimeError

        return wait

    job = queue("[[tokens: 500]][[slow: 0.02]]", background=True)
    worker.wake(background=True)
    wait_until(lambda: Response.objects.filter(public_id=job, status="in_progress").exists())
    with ExitStack() as patches:
        for place, name in (
            (sweeping, "expire_responses"),
            (housekeeper, "recover_background_jobs"),
            (housekeeper, "orphaned_jobs"),
            (claimer, "claim_responses"),
        ):
            patches.enter_context(patch.object(place, name, hanging(name)))
        patches.enter_context(patch.object(host, "scan", hanging("scan")))
        patches.enter_context(patch.object(Run, "close", hanging("close")))
        queue("short")
        for _ in range(8):
            worker.wake()
            time.sleep(0.05)
        time.sleep(2 * 1.5)  # two leases
        assert Response.objects.filter(public_id=job, lease_until__gt=Now(), attempt=1).exists()
        assert Process.objects.filter(pk=worker.id, heartbeat_at__gt=Now() - timedelta(seconds=1.5)).exists()
        assert hung >= {"recover_background_jobs", "orphaned_jobs", "claim_responses", "scan"}
        hang.set()
        bus.publish(bus.process_group(worker.id), CancelRow(row=0))


def test_one_process_at_a_time_has_a_chore() -> None:
    """Until it releases the chore, or renews it too late."""
    assert take_chore("sweep", holder="a")
    assert take_chore("sweep", holder="a")
    assert not take_chore("sweep", holder="b")
    Chore.objects.update(until=Now() - timedelta(seconds=1))
    assert take_chore("sweep", holder="b")
    assert not take_chore("sweep", holder="a")
    release_chore("sweep", holder="a")
    assert not take_chore("sweep", holder="a")
    release_chore("sweep", holder="b")
    assert take_chore("sweep", holder="a")


def test_a_sweep_that_another_process_has_taken_over_ends(hang: threading.Event) -> None:
    """With its next step. So does one that is told to stop."""
    steps: list[str] = []

    def lose_it(pause: Any) -> None:
        Chore.objects.update(holder="another")
        steps.append("step")
        pause()
        steps.append("another step")

    with patch.object(sweeping, "expire_responses", lose_it):
        sweeping.sweep(process="a", sleep=lambda _seconds: False)
        sweeping.sweep(process="a", sleep=lambda _seconds: False)
    assert steps == ["step"]
    Chore.objects.all().delete()
    with patch.object(sweeping, "expire_event_logs") as next_part:
        sweeping.sweep(process="a", sleep=lambda _seconds: True)
    assert not next_part.called
    assert take_chore("sweep", holder="b")
