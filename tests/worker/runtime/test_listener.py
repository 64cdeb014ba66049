"""What other processes ask of a worker: each message does one thing, and none ends the listener."""

from collections.abc import Iterator
from typing import Any, cast
from unittest.mock import Mock

import pytest

from responses_api import bus
from responses_api.bus.messages import (
    CancelRow,
    CountTokens,
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


class Place:
    """A listener and what surrounds it."""

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

    def tell(self, *messages: Message) -> None:
        for message in messages:
            bus.publish(bus.process_group("worker_1"), message)


@pytest.fixture
def place() -> Iterator[Place]:
    place = Place()
    place.listener.start()

    def hears() -> bool:
        place.tell(ResendEvents(response="resp_0", first=0))
        return bool(place.ended.find.called)

    wait_until(hears)  # what is sent before it listens is missed
    yield place
    place.listener.stop(10)


def test_a_run_is_stopped_for_what_it_is(place: Place) -> None:
    """A job is cancelled, a response of the foreground has lost its reader; an unknown row is passed over."""
    job, response = place.add(FakeRun(row=1, is_job=True)), place.add(FakeRun(row=2))
    place.tell(CancelRow(row=0), CancelRow(row=1), CancelRow(row=2))
    wait_until(lambda: response.is_to_stop())
    assert (job.stop_reason, response.stop_reason) == (StopReason.CANCELLED, StopReason.LEFT)


def test_events_are_published_again_while_they_run_and_after(place: Place) -> None:
    """A job's are not: its log has them."""
    running, ended = Mock(), Mock()
    place.add(FakeRun(row=1, published=running))
    place.add(FakeRun(row=2, is_job=True))
    place.ended.find.side_effect = lambda public_id: ended if public_id == "resp_3" else None
    place.tell(*(ResendEvents(response=f"resp_{row}", first=row) for row in (1, 2, 3)))
    wait_until(lambda: ended.replay.called)
    running.replay.assert_called_once_with(1)
    ended.replay.assert_called_once_with(3)


def test_counts_are_handed_to_the_counter(place: Place) -> None:
    place.tell(COUNT, StopCounting(reply="reply"))
    wait_until(lambda: place.counter.forget.called)
    place.counter.ask.assert_called_once_with(COUNT)
    place.counter.forget.assert_called_once_with("reply")


def test_owners_that_are_gone_are_forgotten(place: Place) -> None:
    """By the engines, and by what was remembered of their thinking; others' stays."""
    echo = reasoning_echo()
    items = [{"type": "message", "role": "assistant", "content": "hello"}]
    thought = echo.remember("elsewhere/m", HistoryDigest(), [_reasoning("hm"), *items])
    echo.forget("elsewhere")
    place.tell(*(RememberThoughts(scope=f"{scope}/m", thoughts=tuple(thought)) for scope in ("key-2", "key-3")))
    place.tell(ForgetScopes(scopes=("project-1", "key-2")))
    wait_until(lambda: place.host.engine.forgotten == ["project-1", "key-2"])
    assert echo.restore("key-2/m", items) == items
    assert len(echo.restore("key-3/m", items)) == 2
    echo.forget("key-3")


def test_a_message_that_can_not_be_handled_or_is_for_others_is_passed_over(place: Place) -> None:
    """The listener goes on."""
    place.counter.ask.side_effect = RuntimeError("a fault of ours")
    run = place.add(FakeRun(row=1))
    place.tell(COUNT, TokensCounted(tokens=1), CancelRow(row=1))
    wait_until(run.is_to_stop)


def _reasoning(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}
