"""A step of an engine doesn't end: its process is replaced, its jobs resume elsewhere, and nothing else is affected."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from .cases import Case
from .deployments import Deployment, Missing, redis_deployment
from .kill import disturbed_case, is_set_within
from .poison import events_of, wait_until
from .scripted_jobs import MODEL

STEP_TIMEOUT_SECONDS = 3.0
EXIT_STATUS = 70
MESSAGE = "The model stopped responding in the middle of this response. Send the request again."
BEFORE_SECONDS = 2.0
"""Time for the jobs to be claimed by both workers."""
SETTINGS: dict[str, Any] = {"RESPONSES_STEP_TIMEOUT_SECONDS": str(STEP_TIMEOUT_SECONDS), "RESPONSES_BATCH_SIZE": "4"}


@dataclass(slots=True)
class Hang:
    """What was observed of a stuck engine."""

    seconds: float = 0.0
    """From the request to the end of its stream."""
    events: list[dict[str, Any]] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    """The workers of all requests while the engine was stuck, by public id."""

    @property
    def stuck_jobs(self) -> list[str]:
        """The ids of the jobs of the stuck worker."""
        stream = self.events[0]["response"]["id"]
        return [id for id, worker in self.owners.items() if worker == self.owners[stream] and id != stream]


def step_seconds(deployment: Deployment) -> float:
    """The age of the oldest step, from `/metrics`."""
    with deployment.server.http() as http:
        families = text_string_to_metric_families(http.get("/metrics").raise_for_status().text)
    return next(family.samples[0].value for family in families if family.name == "mlx_responses_step_seconds")


def hang_engine(deployment: Deployment) -> Hang:
    """Send a stream whose engine hangs after five tokens, and read it to the end."""
    hang = Hang()
    payload = {"model": MODEL, "input": "[[tokens: 5]][[hang: 600]]", "store": False}
    started = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: hang.events.extend(events_of(deployment, payload)))
        assert wait_until(lambda: step_seconds(deployment) >= 1), "no step of an engine is a second old"
        hang.owners = dict(deployment.rows("SELECT public_id, worker FROM responses_api_response WHERE worker <> ''"))
        reading.result()
    hang.seconds = time.monotonic() - started
    return hang


def stuck_case(deployment: Deployment, *, jobs: int, seed: int) -> Case:
    """Let the engine of one of two workers hang while both have jobs."""
    hangs: list[Hang] = []

    async def disturb(finished: asyncio.Event) -> int:
        assert not await is_set_within(finished, BEFORE_SECONDS), "all jobs ended before the engine hung"
        hangs.append(await asyncio.to_thread(hang_engine, deployment))
        return len(hangs)

    case = disturbed_case(
        "stuck engine",
        deployment,
        jobs=jobs,
        tokens=200,
        seed=seed,
        disturb=disturb,
        unit="stuck engine",
        expected="response.error",
    )
    (hang,) = hangs
    stuck = hang.stuck_jobs
    case.figures.append(f"its stream failed after {hang.seconds:.1f} s, {len(stuck)} jobs resumed")
    last = hang.events[-1]
    message = (last.get("response") or {}).get("error", {}).get("message")
    case.check((last["type"], message) == ("response.failed", MESSAGE), f"the stream ends in {last['type']}: {message}")
    (line,) = deployment.log_lines("worker.engine_stuck")
    missing = [id for id in (hang.events[0]["response"]["id"], *stuck) if id not in line]
    case.check(not missing, f"the log does not name the requests {missing}: {line}")
    case.check(0 < len(stuck) < jobs, f"the stuck worker had {len(stuck)} of {jobs} jobs")
    attempts = dict(deployment.rows("SELECT public_id, attempt FROM responses_api_response"))
    wrong = {id: attempt for id, attempt in attempts.items() if attempt != (2 if id in stuck else 1)}
    case.check(not wrong, f"these jobs have other numbers of attempts than expected: {wrong}")
    ends = deployment.log_lines("it starts again")
    case.check(
        len(ends) == 1 and f"ended with status {EXIT_STATUS};" in ends[0], f"these processes were started again: {ends}"
    )
    case.check(wait_until(lambda: live_workers(deployment) == 2), "the stuck worker was not replaced")
    case.check(wait_until(lambda: step_seconds(deployment) < 1), "the metrics still show the stuck step")
    return case


def live_workers(deployment: Deployment) -> int:
    """The number of live workers, from `/v1/status`."""
    with deployment.server.http() as http:
        return len(http.get("/status").json()["workers"])


def run_stuck(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """A team with two workers."""
    try:
        with redis_deployment(directory, web=1, workers=2, **SETTINGS) as deployment:
            yield stuck_case(deployment, jobs=6, seed=seed)
    except Missing as missing:
        yield Case("stuck engine", errors=[str(missing)])
