"""Messages from other processes: each has its effect, and none ends the listener."""

from collections.abc import Iterator
from typing import Any, cast
from unittest.mock import Mock

import pytest

from responses_api import bus
from responses_api.bus.messages import (
    CancelRow,
    CountTokens,
    ForgetResponses,
    ForgetScopes,
    Message,
    RememberThoughts,
    ResendEvents,
    StopCounting,
    TokensCounted,
)
from responses_api.interruptions import StopReason
from responses_api.services.prompts.reasoning_echo import HistoryDigest, reasoning_echo
from responses_api.worker.runtime.counting import Counter
from responses_api.worker.runtime.ended_streams import EndedStreams
from responses_api.worker.runtime.listener import Listener
from responses_api.worker.runtime.run_table import RunTable
from tests.worker.rows import wait_until

from .fakes import FakeHost, FakeRun, FakeScheduler

COUNT = CountTokens(reply="reply", model="scripted", payload="{}", parent=None, scope="a")


class Harness:
    """A listener with fake surroundings."""

    def __init__(self) -> None:
        self.table = RunTable(removed=lambda run: None)
        self.scheduler = FakeScheduler()
        self.counter = Mock(spec=Counter)
        self.ended = Mock(spec=EndedStreams)
        self.ended.find.return_value = None
        self.host = FakeHost()
        self.listener = Listener(
            worker="worker_1",
            table=self.table,
            scheduler=self.scheduler.scheduler,
            counter=cast("Counter", self.counter),
            ended=cast("EndedStreams", self.ended),
            host=self.host.host,
        )

    def add(self, run: FakeRun) -> FakeRun:
        self.table.add(run.typed)
        return run

    def publish(self, *messages: Message) -> None:
        for message in messages:
            bus.publish(bus.process_group("worker_1"), message)


@pytest.fixture
def harness() -> Iterator[Harness]:
    harness = Harness()
    harness.listener.start()

    def is_listening() -> bool:
        harness.publish(ResendEvents(response="resp_0", first=0))
        return bool(harness.ended.find.called)

    wait_until(is_listening)  # messages from before it listens are lost
    yield harness
    harness.listener.stop(10)


def test_a_cancelled_run_is_stopped_for_its_kind(harness: Harness) -> None:
    """A job is cancelled, a foreground response has lost its reader; an unknown row is ignored."""
    job, response = harness.add(FakeRun(row=1, is_job=True)), harness.add(FakeRun(row=2))
    harness.publish(CancelRow(row=0), CancelRow(row=1), CancelRow(row=2))
    wait_until(lambda: response.is_to_stop())
    assert (job.stop_reason, response.stop_reason) == (StopReason.CANCELLED, StopReason.LEFT)


def test_events_are_published_again_while_they_run_and_after(harness: Harness) -> None:
    """Except those of a job, which are in its log."""
    running, ended = Mock(), Mock()
    harness.add(FakeRun(row=1, published=running))
    harness.add(FakeRun(row=2, is_job=True))
    harness.ended.find.side_effect = lambda public_id: ended if public_id == "resp_3" else None
    harness.publish(*(ResendEvents(response=f"resp_{row}", first=row) for row in (1, 2, 3)))
    wait_until(lambda: ended.replay.called)
    running.replay.assert_called_once_with(1)
    ended.replay.assert_called_once_with(3)


def test_counts_are_passed_to_the_counter(harness: Harness) -> None:
    harness.publish(COUNT, StopCounting(reply="reply"))
    wait_until(lambda: harness.counter.forget.called)
    harness.counter.ask.assert_called_once_with(COUNT)
    harness.counter.forget.assert_called_once_with("reply")


def test_deleted_owners_are_forgotten(harness: Harness) -> None:
    """By the engines and by the reasoning echo; other owners are not."""
    echo = reasoning_echo()
    items = [{"type": "message", "role": "assistant", "content": "hello"}]
    thought = echo.remember("elsewhere/m", HistoryDigest(), [_reasoning("hm"), *items])
    echo.forget("elsewhere")
    harness.publish(*(RememberThoughts(scope=f"{scope}/m", thoughts=tuple(thought)) for scope in ("key-2", "key-3")))
    harness.publish(ForgetScopes(scopes=("project-1", "key-2")))
    wait_until(lambda: harness.host.engine.forgotten == ["project-1", "key-2"])
    assert echo.restore("key-2/m", items) == items
    assert len(echo.restore("key-3/m", items)) == 2
    echo.forget("key-3")


def test_deleted_responses_are_released(harness: Harness) -> None:
    harness.publish(ForgetResponses(responses=("resp_1",)))
    wait_until(lambda: harness.host.engine.released == [("resp_1",)])


def test_a_message_that_fails_or_is_for_others_is_skipped(harness: Harness) -> None:
    """The listener continues."""
    harness.counter.ask.side_effect = RuntimeError("an unexpected error")
    run = harness.add(FakeRun(row=1))
    harness.publish(COUNT, TokensCounted(tokens=1), CancelRow(row=1))
    wait_until(run.is_to_stop)


def _reasoning(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}
