"""An engine whose step doesn't end: its requests end, and the process is replaced."""

import os
import threading
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

from responses_api.models import Process, Response
from responses_api.worker.hosting import ModelHost
from responses_api.worker.runtime import watchdog
from responses_api.worker.runtime.pump import ChunkQueue
from responses_api.worker.runtime.watchdog import EXIT_STATUS, STUCK, end_process
from responses_api.worker.runtime.worker import GenerationWorker
from tests.turns import ApiUser

from .rows import Sent, end, last, queue, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The worker that was forgotten, and the sentence with which the process would have ended."""
    calls: list[str] = []
    monkeypatch.setattr(watchdog, "forget_process", calls.append)
    monkeypatch.setattr(watchdog, "end_process", calls.append)
    monkeypatch.setattr(watchdog, "SEND_SECONDS", 0.0)
    return calls


@pytest.fixture
def stuck(host: ModelHost) -> Iterator[threading.Event]:
    """Set: the next step of the engine doesn't end before the test does."""
    (model,) = host
    is_stuck, release = threading.Event(), threading.Event()
    cancel = model.engine._cancel  # type: ignore[attr-defined]

    def hang() -> Any:
        if is_stuck.is_set():
            release.wait(4)
        return cancel()

    with patch.object(model.engine, "_cancel", hang):
        yield is_stuck
        release.set()


def test_a_stuck_step_ends_the_requests_and_then_the_process(
    settings: Any,
    host: ModelHost,
    chunks: ChunkQueue,
    stuck: threading.Event,
    ended: list[str],
    sent: Sent,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The reader gets one sentence; the job waits for another worker; nothing more is claimed."""
    settings.RESPONSES_STEP_TIMEOUT_SECONDS = 0.2
    (model,) = host
    ApiUser.make()
    live = queue("[[slow: 0.02]] [[tokens: 500]] private")
    job = queue("[[slow: 0.02]] [[tokens: 500]] private", background=True)
    worker = GenerationWorker(host, chunks)
    worker.start()
    wait_until(lambda: model.load().running == 2)
    stuck.set()
    wait_until(lambda: len(ended) == 2)
    assert ended[0] == worker.id
    assert "has not ended" in ended[1]
    assert end(sent, live) == "response.failed"
    assert STUCK in last(sent, live).events[-1][1]  # type: ignore[union-attr]
    row = Response.objects.get(public_id=job)
    assert (row.status, row.worker, row.lease_until) == ("in_progress", "", None)
    late = queue("hello")
    worker.wake()
    log = caplog.text
    assert "worker.engine_stuck" in log
    assert f"{live}.1.1" in log
    assert f"{job}.1.1" in log
    assert "private" not in log
    stuck.clear()
    worker.stop()
    assert Response.objects.get(public_id=late).status == "queued"
    assert len(ended) == 2


def test_without_a_limit_a_step_may_take_any_time(
    settings: Any, worker: GenerationWorker, host: ModelHost, stuck: threading.Event, ended: list[str]
) -> None:
    """RESPONSES_STEP_TIMEOUT_SECONDS=0."""
    settings.RESPONSES_STEP_TIMEOUT_SECONDS = 0.0
    (model,) = host
    stuck.set()
    model.engine.cancel("unknown")
    queue("hello")
    worker.wake()
    wait_until(lambda: model.load().step_seconds > 1)
    wait_until(Process.objects.filter(pk=worker.id, step_seconds__gt=1).exists)
    assert not ended


def test_the_process_ends_with_a_status_and_a_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    """Without waiting for the threads of engines."""
    with patch.object(os, "_exit") as exited:
        end_process("error: stuck")
    exited.assert_called_once_with(EXIT_STATUS)
    assert capfd.readouterr().err == "error: stuck\n"
