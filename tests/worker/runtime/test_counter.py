"""Counts wait for each other only, and end when nobody waits for them."""

import time
from typing import Any
from unittest.mock import patch

import orjson
import pytest

from responses_api.bus.messages import CountRefused, CountTokens, TokensCounted
from responses_api.protocol import CreateResponse
from responses_api.worker.hosting import ModelHost
from responses_api.worker.runtime import counting
from responses_api.worker.runtime.counting import Counter
from tests.worker.rows import Sent, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_slow_count_delays_nothing_and_ends_when_nobody_waits(host: ModelHost, sent: Sent) -> None:
    """Large counts wait for each other, small ones don't. Abandoned counts stop, and too many are refused."""
    started: list[Any] = []
    counter = Counter(host)

    def count_slowly(*, request: CreateResponse, check: Any, **arguments: Any) -> int:
        if len(str(request.input)) < 1000:
            return 7
        started.append(request)
        while True:
            check()
            time.sleep(0.01)

    def ask(reply: str, text: str) -> None:
        payload = orjson.dumps({"input": text}).decode()
        counter.ask(CountTokens(reply=reply, model="scripted", payload=payload, parent=None, scope="a"))

    with patch.object(counting, "count_prompt", count_slowly):
        for number in range(4):
            ask(f"large-{number}", "a" * 200_000)
        wait_until(lambda: len(started) == 2)
        ask("small", "a")
        wait_until(lambda: sent == [("small", TokensCounted(tokens=7))])
        for number in range(4):
            counter.forget(f"large-{number}")
        wait_until(lambda: counter.waiting == 0)
        assert len(started) == 2
        for number in range(5):
            ask(f"more-{number}", "a" * 8_000_000)
        wait_until(lambda: len(sent) > 1)
        group, refused = sent[-1]
        assert group == "more-4"
        assert isinstance(refused, CountRefused)
        counter.stop()
    assert len(sent) == 2
