"""Preparing: whatever fails, the client gets one sentence, and the slot is free."""

from typing import Any, cast
from unittest.mock import Mock, patch

import pytest
from django.db import OperationalError

from inference.types import ModelError
from responses_api.errors import ApiError, InvalidRequest, Overloaded, ServerError
from responses_api.interruptions import Interrupted
from responses_api.models import Response
from responses_api.worker.generation.logged_output import CannotContinue
from responses_api.worker.generation.run import Run
from responses_api.worker.runtime import preparer as preparing
from responses_api.worker.runtime.counting import HEAVY_BYTES
from responses_api.worker.runtime.preparer import Preparer, is_heavy
from responses_api.worker.runtime.run_table import RunTable
from tests.turns import ApiUser

from .fakes import FakeHost, FakeScheduler

pytestmark = pytest.mark.django_db(transaction=True)


class Harness:
    """A preparer with fake surroundings."""

    def __init__(self) -> None:
        self.removed: list[Any] = []
        self.scheduler = FakeScheduler()
        host = FakeHost(model=Mock())
        self.preparer = Preparer(
            table=RunTable(removed=self.removed.append), host=host.host, scheduler=self.scheduler.scheduler
        )
        self.run = Mock(spec=Run)
        self.run.lease, self.run.sequence_id, self.run.model = Mock(), "resp_1.1", "scripted"
        self.run.request_id, self.run.is_job = "resp_1.1", False
        self.run.is_to_stop.return_value = False
        self.run.interruption.return_value = ServerError("interrupted")

    def begin(self, result: Any) -> None:
        """Start a row whose preparation returns or raises ``result``."""
        outcome = {"side_effect": result} if isinstance(result, Exception) else {"return_value": result}
        with patch.object(preparing, "prepare_generation", **outcome):
            self.preparer.begin(Response(model="scripted", request="{}"), cast("Run", self.run))
        self.preparer.close()


@pytest.fixture
def harness() -> Harness:
    return Harness()


def test_a_small_request_is_submitted_before_begin_returns(harness: Harness) -> None:
    harness.begin(Mock())
    assert harness.scheduler.submitted == [(harness.run, harness.run.begin.return_value)]
    assert not harness.removed


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidRequest("Send less."), InvalidRequest),
        (Interrupted(), ServerError),
        (CannotContinue(), ServerError),
        (ModelError("No such file: /secret"), Overloaded),
        (OperationalError("unavailable"), Overloaded),
        (RuntimeError("an unexpected error"), ServerError),
    ],
)
def test_a_request_that_cannot_be_prepared_is_refused(harness: Harness, error: Exception, kind: type[ApiError]) -> None:
    """With a sentence that reveals nothing of this machine."""
    harness.begin(error)
    ((refusal,), _) = harness.run.refuse.call_args
    assert type(refusal) is kind
    assert "secret" not in refusal.message
    assert harness.removed == [harness.run]
    assert not harness.scheduler.submitted


def test_a_refusal_that_cannot_be_published_frees_the_slot(harness: Harness) -> None:
    harness.run.refuse.side_effect = OperationalError("unavailable")
    harness.begin(InvalidRequest("Send less."))
    assert harness.removed == [harness.run]


def test_a_request_is_heavy_by_the_size_of_its_prompt() -> None:
    """Of its own text, or of the history that it continues."""
    user = ApiUser.make()
    assert not is_heavy(Response(request="{}"))
    assert is_heavy(Response(request=" " * (HEAVY_BYTES + 1)))
    short, long = (Response.objects.get(public_id=user.turn("a" * size)) for size in (1, HEAVY_BYTES))
    assert not is_heavy(Response(request="{}", parent_id=short.turn_id))
    assert is_heavy(Response(request="{}", parent_id=long.turn_id))
    with patch.object(preparing, "history_size", side_effect=OperationalError("unavailable")):
        assert is_heavy(Response(request="{}", parent_id=short.turn_id))
