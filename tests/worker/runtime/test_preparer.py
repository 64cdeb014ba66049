"""Preparing: whatever goes wrong, the client is told one sentence, and the slot is free."""

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


class LoadedHost(FakeHost):
    """Its model is loaded, or can't be."""

    def is_running(self, name: str) -> bool:
        return True


class Place:
    """A preparer and what surrounds it."""

    def __init__(self) -> None:
        self.removed: list[Any] = []
        self.scheduler = FakeScheduler()
        host = LoadedHost(model=Mock())
        self.preparer = Preparer(
            table=RunTable(removed=self.removed.append), host=host.host, scheduler=self.scheduler.scheduler
        )
        self.run = Mock(spec=Run)
        self.run.lease, self.run.sequence_id, self.run.model = Mock(), "resp_1.1", "scripted"
        self.run.request_id = "resp_1.1"
        self.run.is_to_stop.return_value = False
        self.run.interruption.return_value = ServerError("interrupted")

    def begin(self, result: Any) -> None:
        """Begin a row whose preparation gives or raises ``result``."""
        outcome = {"side_effect": result} if isinstance(result, Exception) else {"return_value": result}
        with patch.object(preparing, "prepare_generation", **outcome):
            self.preparer.begin(Response(model="scripted", request="{}"), cast("Run", self.run))
        self.preparer.close()


@pytest.fixture
def place() -> Place:
    return Place()


def test_what_is_small_is_submitted_before_begin_returns(place: Place) -> None:
    place.begin(Mock())
    assert place.scheduler.submitted == [(place.run, place.run.begin.return_value)]
    assert not place.removed


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidRequest("Send less."), InvalidRequest),
        (Interrupted(), ServerError),
        (CannotContinue(), ServerError),
        (ModelError("No such file: /secret"), Overloaded),
        (OperationalError("away"), Overloaded),
        (RuntimeError("a fault of ours"), ServerError),
    ],
)
def test_what_can_not_be_prepared_is_refused(place: Place, error: Exception, kind: type[ApiError]) -> None:
    """By a sentence that tells nothing of this machine."""
    place.begin(error)
    ((refusal,), _) = place.run.refuse.call_args
    assert type(refusal) is kind
    assert "secret" not in refusal.message
    assert place.removed == [place.run]
    assert not place.scheduler.submitted


def test_a_refusal_that_can_not_be_told_frees_the_slot(place: Place) -> None:
    place.run.refuse.side_effect = OperationalError("away")
    place.begin(InvalidRequest("Send less."))
    assert place.removed == [place.run]


def test_a_request_is_heavy_by_what_it_has_to_render() -> None:
    """Its own text, or the history that it continues."""
    user = ApiUser.make()
    assert not is_heavy(Response(request="{}"))
    assert is_heavy(Response(request=" " * (HEAVY_BYTES + 1)))
    short, long = (Response.objects.get(public_id=user.turn("a" * size)) for size in (1, HEAVY_BYTES))
    assert not is_heavy(Response(request="{}", parent_id=short.turn_id))
    assert is_heavy(Response(request="{}", parent_id=long.turn_id))
    with patch.object(preparing, "history_size", side_effect=OperationalError("away")):
        assert is_heavy(Response(request="{}", parent_id=short.turn_id))
