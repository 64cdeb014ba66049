"""The server is killed while the real model answers: the stream continues as if nothing had happened."""

import os
import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from inference import ModelError, Registry, pull_default
from responses_site.setting_kinds import BASE_DIR
from tests.live.server import embedded
from tests.streaming.streams import Events

from .cases import Case
from .deployments import (
    SETTINGS,
    Deployment,
    Missing,
    database,
    fresh_directory,
    kill,
    own_redis,
    started,
    stopped_team,
)
from .poison import wait_until
from .scripted_jobs import stream_errors

QUESTIONS = (
    "Tell me how the tides come about.",
    "What is a lighthouse for? Answer in five sentences.",
    "Écris une petite histoire d'un chat à Orléans.",
)
TOKENS = 160
"""Limit for an answer."""


def ask(deployment: Deployment, question: str, temperature: float) -> str:
    """Create a job that answers a question. Returns its id."""
    job = deployment.server.client().responses.create(
        model="smollm2-135m",
        input=question,
        background=True,
        max_output_tokens=TOKENS,
        temperature=temperature,
        include=["message.output_text.logprobs"],
        top_logprobs=0,
    )
    return job.id


def read(deployment: Deployment, job: str, events: Events, *, until: int | None = None) -> None:
    """Read a job's stream after the given events: to its end, or until there are so many events."""
    after: dict[str, Any] = {"starting_after": len(events) - 1} if events else {}
    with deployment.server.client().responses.retrieve(job, stream=True, **after) as stream:
        for event in stream:
            events.append(event.to_dict(mode="json"))
            if until is not None and len(events) >= until:
                return


def tokens_of(events: Events) -> list[bytes]:
    """The tokens of a stream, by its log-probabilities. A token that ends within a character may be split in two."""
    entries = (event["logprobs"] for event in events if event["type"] == "response.output_text.delta")
    return [bytes(entry["bytes"]) for entry in chain.from_iterable(entries)]


def realmodel_case(deployment: Deployment, *, questions: int, kills: int, temperature: float, seed: int) -> Case:
    """Kill the worker while several jobs are read, and continue to read."""
    case = Case(f"the real model at temperature {temperature:g}, {deployment.name}")
    rng = random.Random(seed)
    questions_asked = [QUESTIONS[number % len(QUESTIONS)] for number in range(questions)]
    jobs = [ask(deployment, question, temperature) for question in questions_asked]
    received: list[Events] = [[] for _ in jobs]
    for _ in range(kills):
        for job, events in zip(jobs, received, strict=True):
            read(deployment, job, events, until=len(events) + rng.randint(10, 25))
        if deployment.is_embedded:
            deployment.server.kill()
            deployment.server.start()
        else:
            for pid in deployment.processes("worker"):
                kill(pid)
    tokens_before = [len(tokens_of(events)) for events in received]
    for job, events in zip(jobs, received, strict=True):
        read(deployment, job, events)
        stored: dict[str, Any] = (
            deployment.server.client()
            .responses.retrieve(job, include=["message.output_text.logprobs"])
            .to_dict(mode="json")
        )
        replayed: Events = []
        read(deployment, job, replayed)
        case.errors += [f"{job}: {error}" for error in stream_errors(events, stored, replayed)]
        case.check(stored["status"] in ("completed", "incomplete"), f"{job} is {stored['status']}")
        tokens = tokens_of(events)
        text = "".join(part["text"] for item in stored["output"] for part in item["content"])
        joined = b"".join(tokens).decode(errors="replace")
        case.check(joined == text, f"{job}: its tokens add up to {joined!r}, its text is {text!r}")
        counted, partial = stored["usage"]["output_tokens"], sum(not is_whole_text(token) for token in tokens)
        case.check(
            len(tokens) - partial <= counted <= len(tokens) + 1,
            f"{job}: {len(tokens)} tokens are published, {counted} counted",
        )
    case.figures += [f"{questions} answers", f"{kills} kills", f"read before the last one: {tokens_before} tokens"]
    attempts = deployment.rows("SELECT MAX(attempt) FROM responses_api_response")[0][0]
    case.figures.append(f"at most {attempts} claims per job")
    if not temperature:
        case.figures.append(f"{count_undisturbed(deployment, questions_asked, jobs)} of {questions} as without a kill")
    return case


def is_whole_text(token: bytes) -> bool:
    """Whether a token consists of whole characters."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def count_undisturbed(deployment: Deployment, questions: list[str], jobs: list[str]) -> int:
    """The number of greedy answers that equal those of jobs without a disturbance."""
    again = [ask(deployment, question, 0) for question in questions]
    client = deployment.server.client()
    wait_until(lambda: all(client.responses.retrieve(job).status not in ("queued", "in_progress") for job in again))
    return sum(
        client.responses.retrieve(one).output_text == client.responses.retrieve(other).output_text
        for one, other in zip(jobs, again, strict=True)
    )


def default_models() -> Path:
    """The directory of the models, after the default model was downloaded."""
    data_dir = Path(os.environ.get("RESPONSES_DATA_DIR", BASE_DIR / ".data")).resolve()
    try:
        pull_default(Registry(data_dir))
    except ModelError as error:
        raise Missing(f"needs the default model ({error})") from error
    return data_dir / "models"


def real_embedded(directory: Path, models: Path) -> Deployment:
    """An embedded server with the default model, not started."""
    data_dir = fresh_directory(directory)
    (data_dir / "models").symlink_to(models)
    server = embedded(data_dir, **SETTINGS, RESPONSES_ENGINE="mlx")
    return Deployment(name="SQLite embedded", server=server)


def run_realmodel(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """Both shapes, greedy and sampled."""
    try:
        models = default_models()
        with started(real_embedded(directory, models)) as deployment:
            for temperature in (0.0, 1.0):
                yield realmodel_case(deployment, questions=4, kills=2, temperature=temperature, seed=seed)
        with database() as url, own_redis() as redis:
            server = stopped_team(directory, redis.url, url, web=1, workers=1, RESPONSES_ENGINE="mlx")
            (server.data_dir / "models").symlink_to(models)
            with started(Deployment(name="PostgreSQL + Redis", server=server, database_url=url)) as deployment:
                yield realmodel_case(deployment, questions=4, kills=2, temperature=1.0, seed=seed)
    except Missing as missing:
        yield Case("the real model", errors=[str(missing)])
