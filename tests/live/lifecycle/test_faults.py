"""Short versions of the scripts in tests/faults; `make faults` runs the long ones."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.faults.cancel import BATCH, cancel_case
from tests.faults.cases import Case
from tests.faults.deployments import (
    DEPLOYMENTS,
    Deployment,
    Missing,
    database,
    own_redis,
    redis_deployment,
    started,
    stopped_team,
    wrong_clocks,
)
from tests.faults.fencing import check_dates, frozen_case
from tests.faults.kill import kill_case
from tests.faults.poison import poison_case
from tests.faults.scripted_jobs import MODEL
from tests.live.server import embedded

pytestmark = pytest.mark.timeout(400)  # workers are restarted repeatedly

SEED = 7


def opened(shape: str, directory: Path, *, workers: int = 2, **settings: str) -> AbstractContextManager[Deployment]:
    """A server of this shape; skips the test if one of its services is missing."""
    size = {} if shape == "embedded" else {"workers": workers}
    return DEPLOYMENTS[shape](directory, **size, **settings)


def check(case: Case) -> None:
    """Check that a case found no error."""
    assert not case.errors, str(case)


@pytest.fixture(autouse=True)
def services(request: pytest.FixtureRequest) -> None:
    """The services that the shape needs."""
    shape = request.node.callspec.params.get("shape", "") if hasattr(request.node, "callspec") else ""
    if shape in ("redis", "rabbitmq"):
        request.getfixturevalue("postgres_server")
        request.getfixturevalue("redis_url")
    if shape == "rabbitmq":
        request.getfixturevalue("amqp_url")


@pytest.mark.parametrize("shape", ["embedded", "redis"])
def test_jobs_outlive_workers_that_are_killed(shape: str, tmp_path: Path) -> None:
    """Each job is finished, and each stream is complete, even for readers that come and go."""
    with opened(shape, tmp_path, RESPONSES_BATCH_SIZE="6") as deployment:
        seconds = (1.2, 2.5) if deployment.is_embedded else (2.5, 4)  # a team restarts a worker after two seconds
        check(kill_case(deployment, jobs=8, tokens=50, seconds=seconds, seed=SEED))


@pytest.mark.parametrize("shape", ["redis"])
def test_a_frozen_worker_writes_nothing(shape: str, tmp_path: Path) -> None:
    """Its jobs have been resumed elsewhere by the time it wakes, whatever the workers' clocks say."""
    try:
        clocks = wrong_clocks(right=0)
    except Missing as missing:
        pytest.skip(str(missing))
    with redis_deployment(tmp_path, web=1, workers=1, **clocks, RESPONSES_BATCH_SIZE="4") as deployment:
        case = frozen_case(deployment, jobs=8, seed=SEED, tokens=120)
        check_dates(case, deployment)
        check(case)


@pytest.mark.parametrize("shape", ["embedded", "redis"])
def test_cancelled_jobs_end(shape: str, tmp_path: Path) -> None:
    """Whenever they are cancelled."""
    with opened(shape, tmp_path, workers=1, RESPONSES_BATCH_SIZE=str(BATCH)) as deployment:
        check(cancel_case(deployment, jobs=20, seed=SEED))


def test_a_job_that_no_worker_survives_fails(tmp_path: Path) -> None:
    """After three lost attempts."""
    with opened("embedded", tmp_path) as deployment:
        check(poison_case(deployment))


@pytest.mark.parametrize("shape", ["redis"])
def test_a_process_recovers_if_its_first_request_finds_no_broker(shape: str, tmp_path: Path) -> None:
    """503 while the broker is unavailable, on every route that needs it; afterwards answers and streams as usual."""
    with database() as url, own_redis() as redis:
        server = stopped_team(tmp_path, redis.url, url, web=1, workers=1)
        with started(Deployment(name="PostgreSQL + Redis", server=server, database_url=url)), server.http() as http:
            redis.stop()
            for path in ("responses", "responses/input_tokens", "responses"):
                answer = http.post(path, json={"model": MODEL, "input": "hello"})
                assert (answer.status_code, answer.json()["error"]["code"]) == (503, "server_overloaded")
            redis.start()
            deadline = time.monotonic() + 20
            while http.post("responses/input_tokens", json={"model": MODEL, "input": "hello"}).status_code != 200:
                assert time.monotonic() < deadline, "the process does not recover"
                time.sleep(0.2)
            answer = http.post("responses", json={"model": MODEL, "input": "[[tokens: 50]][[slow: 0.05]]"})
            assert answer.json()["status"] == "completed"
            counted = query_rows(url, "SELECT COUNT(*) FROM responses_api_process WHERE kind = 'web'")
            assert counted == [(1,)]


def test_requests_that_wait_for_a_lock_delay_no_heartbeat(postgres_url: str, tmp_path: Path) -> None:
    """They use all threads and connections that they may; a stream and a job continue."""
    server = embedded(
        tmp_path, DATABASE_URL=postgres_url, RESPONSES_LEASE_SECONDS="1.5", RESPONSES_DATABASE_CONNECTIONS="6"
    )
    with (
        started(Deployment(name="PostgreSQL embedded", server=server, database_url=postgres_url)),
        server.http() as http,
    ):
        job = http.post("responses", json={"input": "[[tokens: 200]][[slow: 0.05]]", "background": True}).json()["id"]
        slow = {"input": "[[tokens: 100]][[slow: 0.05]]", "stream": True}
        with http.stream("POST", "responses", json=slow) as stream, psycopg.connect(postgres_url) as other:
            lines = stream.iter_lines()
            assert next(lines) == "event: response.created"
            other.execute("LOCK TABLE responses_api_apikey IN ACCESS EXCLUSIVE MODE")
            with ThreadPoolExecutor(16) as clients:
                asked = [clients.submit(http.post, "responses", json={"input": "hello"}) for _ in range(16)]
                time.sleep(4)  # more than two leases
                rows = query_rows(
                    postgres_url,
                    "SELECT COUNT(*) FROM responses_api_process WHERE heartbeat_at > NOW() - INTERVAL '1.5 seconds'",
                )
                held = query_rows(
                    postgres_url,
                    f"SELECT attempt, lease_until > NOW() FROM responses_api_response WHERE public_id = '{job}'",
                )
                other.rollback()
                assert {answer.result().status_code for answer in asked} <= {200, 503}
            kinds = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert rows == [(2,)]
    assert held == [(1, True)]
    assert kinds[-1] == "response.completed"


def query_rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a query on a PostgreSQL database."""
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()
