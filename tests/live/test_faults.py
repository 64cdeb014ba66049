"""Short versions of the scripts in tests/faults: `make faults` has the long ones."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.faults.cancel import BATCH, cancel_case
from tests.faults.cases import Case
from tests.faults.fencing import check_dates, frozen_case
from tests.faults.kill import kill_case
from tests.faults.places import PLACES, Missing, Place, redis_place, wrong_clocks
from tests.faults.poison import poison_case

pytestmark = pytest.mark.timeout(400)  # workers are started again and again

SEED = 7


def opened(shape: str, work: Path, *, workers: int = 2, **settings: str) -> AbstractContextManager[Place]:
    """A server of this shape; the test is skipped where its services are not."""
    size = {} if shape == "embedded" else {"workers": workers}
    return PLACES[shape](work, **size, **settings)


def check(case: Case) -> None:
    """Nothing was wrong."""
    assert not case.faults, str(case)


@pytest.fixture(autouse=True)
def services(request: pytest.FixtureRequest) -> None:
    """What the shape needs."""
    shape = request.node.callspec.params.get("shape", "") if hasattr(request.node, "callspec") else ""
    if shape in ("redis", "rabbitmq"):
        request.getfixturevalue("postgres_server")
        request.getfixturevalue("redis_url")
    if shape == "rabbitmq":
        request.getfixturevalue("amqp_url")


@pytest.mark.parametrize("shape", ["embedded", "redis"])
def test_jobs_outlive_workers_that_are_killed(shape: str, tmp_path: Path) -> None:
    """Each is finished, and each stream is whole, also for readers that come and go."""
    with opened(shape, tmp_path, RESPONSES_BATCH_SIZE="6") as place:
        seconds = (1.2, 2.5) if place.is_embedded else (2.5, 4)  # a team starts a worker again after two seconds
        check(kill_case(place, jobs=8, tokens=50, seconds=seconds, seed=SEED))


@pytest.mark.parametrize("shape", ["redis"])
def test_who_was_frozen_writes_nothing(shape: str, tmp_path: Path) -> None:
    """Its jobs have gone on elsewhere by the time it wakes, whatever the workers' clocks say."""
    try:
        clocks = wrong_clocks(right=0)
    except Missing as missing:
        pytest.skip(str(missing))
    with redis_place(tmp_path, web=1, workers=1, **clocks, RESPONSES_BATCH_SIZE="4") as place:
        case = frozen_case(place, jobs=8, seed=SEED, tokens=120)
        check_dates(case, place)
        check(case)


@pytest.mark.parametrize("shape", ["embedded", "redis"])
def test_cancelled_jobs_are_over(shape: str, tmp_path: Path) -> None:
    """At whatever moment they are cancelled."""
    with opened(shape, tmp_path, workers=1, RESPONSES_BATCH_SIZE=str(BATCH)) as place:
        check(cancel_case(place, jobs=20, seed=SEED))


def test_a_job_that_no_worker_survives_fails(tmp_path: Path) -> None:
    """After three losses."""
    with opened("embedded", tmp_path) as place:
        check(poison_case(place))
