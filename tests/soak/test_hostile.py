"""Friendly clients beside hostile ones: no 500, no lost lease, constant memory. `tests/hostile` has a short form."""

import secrets
from collections.abc import Iterator

import pytest

from tests.hostile.measure import Rules
from tests.hostile.plans import at_random
from tests.hostile.report import report
from tests.hostile.run import Victims, make_server, run
from tests.live.server import LiveServer
from tests.services import fresh_database

from . import LONG, SECONDS, TIMEOUT

pytestmark = [pytest.mark.skipif(not LONG, reason="takes long: run make soak"), pytest.mark.timeout(TIMEOUT)]

UNLIMITED = float("inf")
RULES = Rules(stall=5, slope=UNLIMITED)
FRIENDLY_CLIENTS = Victims(count=8, tokens=300, slow=0.05)


@pytest.fixture
def stopped_server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """A server of each shape, not yet started."""
    if request.param == "embedded":
        yield make_server("embedded")
        return
    with fresh_database(request.getfixturevalue("postgres_server")) as url:
        yield make_server("team", database_url=url, redis_url=request.getfixturevalue("redis_url"))


@pytest.mark.parametrize("stopped_server", ["embedded", "team"], indirect=True)
def test_friendly_clients_beside_hostile_ones_lose_nothing(stopped_server: LiveServer) -> None:
    """Every stream and job of the friendly clients is complete, whatever is sent beside them."""
    seed = secrets.randbelow(2**32)
    outcome = run(stopped_server, at_random(seconds=SECONDS / 2, seed=seed), rules=RULES, victims=FRIENDLY_CLIENTS)
    print(f"seed {seed}, {outcome.victims} friendly answers", report(outcome.measurements), sep="\n")
    assert not outcome.errors
    assert not [f"{one}: {one.violations}" for one in outcome.violations]
    assert outcome.victims
