"""The server is killed while the real model answers: the answer is one text, and what was read of it stays."""

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
from .places import SETTINGS, Missing, Place, fresh_directory, kill, own_redis, started, team
from .places import database as some_database
from .poison import wait_until
from .work import stream_faults

QUESTIONS = (
    "Tell me how the tides come about.",
    "What is a lighthouse for? Answer in five sentences.",
    "Écris une petite histoire d'un chat à Orléans.",
)
TOKENS = 160
"""Longest answer."""


def ask(place: Place, question: str, temperature: float) -> str:
    """Have a job answer a question; its id."""
    job = place.server.client().responses.create(
        model="smollm2-135m",
        input=question,
        background=True,
        max_output_tokens=TOKENS,
        temperature=temperature,
        include=["message.output_text.logprobs"],
        top_logprobs=0,
    )
    return job.id


def read(place: Place, job: str, events: Events, *, until: int | None = None) -> None:
    """Read a job's stream from where it was: to its end, or until so many events are there."""
    after: dict[str, Any] = {"starting_after": len(events) - 1} if events else {}
    with place.server.client().responses.retrieve(job, stream=True, **after) as stream:
        for event in stream:
            events.append(event.to_dict(mode="json"))
            if until is not None and len(events) >= until:
                return


def tokens_of(events: Events) -> list[bytes]:
    """The tokens of a stream, by its log-probabilities. One that ends within a character may be there in two parts."""
    entries = (event["logprobs"] for event in events if event["type"] == "response.output_text.delta")
    return [bytes(entry["bytes"]) for entry in chain.from_iterable(entries)]


def realmodel_case(place: Place, *, questions: int, kills: int, temperature: float, seed: int) -> Case:
    """Kill the worker while several jobs are read, and go on reading."""
    case = Case(f"the real model at temperature {temperature:g}, {place.name}")
    chance = random.Random(seed)
    asked = [QUESTIONS[number % len(QUESTIONS)] for number in range(questions)]
    jobs = [ask(place, question, temperature) for question in asked]
    seen: list[Events] = [[] for _ in jobs]
    for _ in range(kills):
        for job, events in zip(jobs, seen, strict=True):
            read(place, job, events, until=len(events) + chance.randint(10, 25))
        if place.is_embedded:
            place.server.kill()
            place.server.start()
        else:
            for pid in place.processes("worker"):
                kill(pid)
    cut = [len(tokens_of(events)) for events in seen]
    for job, events in zip(jobs, seen, strict=True):
        read(place, job, events)
        stored: dict[str, Any] = place.server.client().responses.retrieve(job).to_dict(mode="json")
        replayed: Events = []
        read(place, job, replayed)
        case.faults += [f"{job}: {fault}" for fault in stream_faults(events, stored, replayed)]
        case.check(stored["status"] in ("completed", "incomplete"), f"{job} is {stored['status']}")
        tokens = tokens_of(events)
        text = "".join(part["text"] for item in stored["output"] for part in item["content"])
        spelt = b"".join(tokens).decode(errors="replace")
        case.check(spelt == text, f"{job}: its tokens add up to {spelt!r}, its text is {text!r}")
        used, halves = stored["usage"]["output_tokens"], sum(not is_text(token) for token in tokens)
        case.check(
            len(tokens) - halves <= used <= len(tokens) + 1, f"{job}: {len(tokens)} tokens are told, {used} counted"
        )
    case.figures += [f"{questions} answers", f"{kills} kills", f"read before the last one: {cut} tokens"]
    attempts = place.rows("SELECT MAX(attempt) FROM responses_api_response")[0][0]
    case.figures.append(f"{attempts} claims of a job")
    if not temperature:
        case.figures.append(f"{same(place, asked, jobs)} of {questions} as without a kill")
    return case


def is_text(token: bytes) -> bool:
    """Whether it is made of whole characters."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def same(place: Place, asked: list[str], jobs: list[str]) -> int:
    """How many greedy answers are those of jobs that nothing happened to."""
    again = [ask(place, question, 0) for question in asked]
    client = place.server.client()
    wait_until(lambda: all(client.responses.retrieve(job).status not in ("queued", "in_progress") for job in again))
    return sum(
        client.responses.retrieve(one).output_text == client.responses.retrieve(other).output_text
        for one, other in zip(jobs, again, strict=True)
    )


def default_models() -> Path:
    """The directory of the models, with the default one in it."""
    data_dir = Path(os.environ.get("RESPONSES_DATA_DIR", BASE_DIR / ".data")).resolve()
    try:
        pull_default(Registry(data_dir))
    except ModelError as error:
        raise Missing(f"needs the default model ({error})") from error
    return data_dir / "models"


def real_embedded(work: Path, models: Path) -> Place:
    """An embedded server with the default model, not started."""
    data_dir = fresh_directory(work)
    (data_dir / "models").symlink_to(models)
    server = embedded(data_dir, **SETTINGS, RESPONSES_ENGINE="mlx")
    return Place(name="SQLite embedded", server=server)


def run_realmodel(work: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """In both shapes, greedy and sampled."""
    try:
        models = default_models()
        with started(real_embedded(work, models)) as place:
            for temperature in (0.0, 1.0):
                yield realmodel_case(place, questions=4, kills=2, temperature=temperature, seed=seed)
        with some_database() as url, own_redis() as redis:
            server = team(work, redis.url, url, web=1, workers=1, RESPONSES_ENGINE="mlx")
            (server.data_dir / "models").symlink_to(models)
            with started(Place(name="PostgreSQL + Redis", server=server, database_url=url)) as place:
                yield realmodel_case(place, questions=4, kills=2, temperature=1.0, seed=seed)
    except Missing as missing:
        yield Case("the real model", faults=[str(missing)])
