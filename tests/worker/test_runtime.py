"""A worker whose surroundings fail: every claimed row comes to an end, and every reader hears of it."""

import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from django.db import OperationalError

from responses_api import bus
from responses_api.bus.messages import (
    CountRefused,
    CountTokens,
    ForgetScopes,
    Message,
    ResponseEvents,
    ResponseRefused,
    StopCounting,
    TokensCounted,
)
from responses_api.caller import Caller
from responses_api.errors import Overloaded
from responses_api.models import Response
from responses_api.models.store.response import ACTIVE
from responses_api.protocol import CreateResponse
from responses_api.selectors.models import forget_fleet
from responses_api.services.accounts.authenticate import default_project
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.leases import claim_responses
from responses_api.services.prompts.assemble_history import COMPACTING
from responses_api.worker import counting, runtime
from responses_api.worker.generation.prepare_generation import Compacting, prepare_generation
from responses_api.worker.generation.run_generation import Generation
from responses_api.worker.hosted_models import ModelHost
from responses_api.worker.runtime import GenerationWorker

NEXT = Compacting.next
Heard = list[tuple[str, Message]]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def heard() -> Iterator[Heard]:
    """Everything that is published."""
    messages: Heard = []
    with patch.object(bus, "publish", lambda group, message: messages.append((group, message))):
        yield messages


@pytest.fixture
def worker(settings: Any) -> Iterator[GenerationWorker]:
    settings.RESPONSES_ENGINE = "scripted"
    settings.RESPONSES_LEASE_SECONDS = 1.5
    found = GenerationWorker()
    host = ModelHost(found.sink)
    host.scan()
    host.default().ensure_running()
    found.start(host)
    forget_fleet()
    yield found
    found.stop()


def queue(text: str, *, background: bool = False, stream: bool = True, store: bool = True, **options: Any) -> str:
    """A waiting row; the id of its response."""
    kind = {"background": True} if background else {"stream": stream}
    payload = {"input": text, "store": store, **kind, **options}
    public_id = new_response_id()
    create_response(
        caller=Caller(project=default_project()),
        public_id=public_id,
        payload=payload,
        reader="" if background else "web_1",
    )
    return public_id


def wait_until_none_is_active() -> None:
    deadline = time.monotonic() + 10
    while Response.objects.filter(status__in=ACTIVE).exists():
        assert time.monotonic() < deadline, "a row stays active"
        time.sleep(0.02)


def last(heard: Heard, public_id: str) -> Message:
    """What the readers of a response were told last."""
    return [message for group, message in heard if group == bus.response_group(public_id)][-1]


def end(heard: Heard, public_id: str) -> str:
    """The type of the last event of a stream that has ended."""
    message = last(heard, public_id)
    assert isinstance(message, ResponseEvents)
    assert message.last
    return message.events[-1][0]


def test_a_database_that_fails_while_requests_begin_leaves_none_of_them_waiting(
    worker: GenerationWorker, heard: Heard
) -> None:
    """Neither the one that it failed for, nor those that were claimed together with it."""
    broken: list[str] = []

    def fail_for_the_first(*, row: Response, **arguments: Any) -> Any:
        if orjson.loads(row.request)["input"] == "0":
            broken.append(row.public_id)
            raise OperationalError("terminating connection")
        return prepare_generation(row=row, **arguments)

    # From before the first is queued, since the claim that the worker's start asked for may be under way.
    with (
        patch.object(runtime, "prepare_generation", fail_for_the_first),
        patch.object(Generation, "refuse", refuse_without_database),
    ):
        with worker._lock:
            worker._claim_pending = True  # so that all are claimed together
        ids = [queue(str(number)) for number in range(3)]
        worker._claim()
        wait_until_none_is_active()
    assert broken == ids[:1]
    refusal = last(heard, ids[0])
    assert isinstance(refusal, ResponseRefused)
    assert isinstance(refusal.error.as_error(), Overloaded)
    assert all(end(heard, public_id) for public_id in ids[1:])


def test_a_claim_under_way_when_the_worker_stops_is_given_back(worker: GenerationWorker) -> None:
    """As if it had not been made: the job is neither begun nor lost."""

    def claim_late(**arguments: Any) -> list[Response]:
        rows = claim_responses(**arguments)
        if rows:
            worker._stopping.set()
        return rows

    with patch.object(runtime, "claim_responses", claim_late):
        with worker._lock:
            worker._claim_pending = True  # nobody else claims it
        job = queue("[[tokens: 3]]", background=True)
        with worker._lock:
            worker._jobs_wait = True
        worker._claim()
    row = Response.objects.get(public_id=job)
    assert row.attempt  # twice, when the claim that the worker's start asked for was under way too
    assert (row.status, row.worker, row.losses) == ("queued", "", 0)


def refuse_without_database(run: Any, error: Any) -> None:
    """``Generation.refuse`` while the database is away."""
    with patch.object(type(run.lease), "rows", side_effect=OperationalError("still away")):
        REFUSE(run, error)


REFUSE = Generation.refuse


def test_a_request_whose_engine_stops_under_it_fails_instead_of_waiting(worker: GenerationWorker, heard: Heard) -> None:
    """Its reader gets `response.failed`."""
    (model,) = worker._host

    def stop_then_refuse(request: Any) -> None:
        model.engine.close()
        type(model.engine).submit(model.engine, request)

    with patch.object(model.engine, "submit", stop_then_refuse):
        public_id = queue("hello")
        worker.wake()
        wait_until_none_is_active()
    worker.drain()
    assert end(heard, public_id) == "response.failed"


def test_an_engine_that_has_stopped_is_replaced(worker: GenerationWorker, heard: Heard) -> None:
    """What comes next is answered by a new one."""
    (model,) = worker._host
    stopped = model.engine
    stopped.close()
    assert not model.is_running
    public_id = queue("hello")
    worker.wake()
    wait_until_none_is_active()
    worker.drain()
    assert end(heard, public_id) == "response.completed"
    assert model.engine is not stopped


def test_a_worker_forgets_what_has_ended(worker: GenerationWorker, heard: Heard) -> None:
    """Else it would take no more requests after some hundreds; their last events can still be asked for again."""
    ids = [queue("hi"), queue("hi"), queue("[[fail: So it is.]]")]
    worker._claim()
    wait_until_none_is_active()
    deadline = time.monotonic() + 10
    while worker._runs or worker._by_request:
        assert time.monotonic() < deadline, "an ended response is held on to"
        time.sleep(0.02)
    assert all(public_id in worker.ended for public_id in ids)


def test_owners_that_are_gone_are_forgotten(worker: GenerationWorker) -> None:
    """By the engines and by what was remembered of their thinking."""
    with patch.object(type(worker._host.default().engine), "forget") as forget:
        worker._hear(ForgetScopes(scopes=("project-1", "key-2")))
    assert [call.args[-1] for call in forget.call_args_list] == ["project-1", "key-2"]


def test_what_takes_long_to_prepare_holds_up_nothing_else(worker: GenerationWorker, heard: Heard) -> None:
    """Neither large requests nor compactions, however many: a small one begins and ends meanwhile."""
    go_on = threading.Event()
    held: list[str] = []

    def wait_if_large(*, row: Response, **arguments: Any) -> Any:
        if len(row.request) > 100_000:
            held.append(row.public_id)
            go_on.wait(20)
        return prepare_generation(row=row, **arguments)

    def wait_for_next(compacting: Compacting) -> Any:
        held.append("compacting")
        go_on.wait(20)
        return NEXT(compacting)

    with (
        patch.object(runtime, "prepare_generation", wait_if_large),
        patch.object(Compacting, "next", wait_for_next),
    ):
        try:
            for number in range(6):
                queue(f"{number}" + "a" * 200_000)
                queue(f"{number}", context_management=[{"type": "compaction", "compact_threshold": 1}])
            worker.wake()
            small = queue("small")
            deadline = time.monotonic() + 10
            while Response.objects.filter(public_id=small, status__in=ACTIVE).exists():
                assert time.monotonic() < deadline, "it waits for the others"
                worker.wake()
                time.sleep(0.02)
            assert len(held) == 4
            assert COMPACTING.size() > 0
        finally:
            go_on.set()
        wait_until_none_is_active()
    assert end(heard, small) == "response.completed"
    worker.drain()
    assert COMPACTING.size() == 0


def test_a_count_that_takes_long_holds_up_nothing_and_ends_when_nobody_waits(
    worker: GenerationWorker, heard: Heard
) -> None:
    """Large ones wait for each other, small ones and generations don't; who left is counted for no longer."""
    begun: list[Any] = []

    def count_slowly(*, request: CreateResponse, check: Any, **arguments: Any) -> int:
        if len(str(request.input)) < 1000:
            return 7
        begun.append(request)
        while True:
            check()
            time.sleep(0.01)

    def ask(reply: str, text: str) -> None:
        payload = orjson.dumps({"input": text}).decode()
        worker._hear(CountTokens(reply=reply, model="scripted", payload=payload, parent=None, scope="a"))

    def answers() -> list[str]:
        return [group for group, message in heard if isinstance(message, TokensCounted | CountRefused)]

    def eventually(condition: Any) -> bool:
        deadline = time.monotonic() + 10
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.01)
        return bool(condition())

    with patch.object(counting, "count_prompt", count_slowly):
        for number in range(4):
            ask(f"large-{number}", "a" * 200_000)
        assert eventually(lambda: len(begun) == 2)
        ask("small", "a")
        assert eventually(lambda: answers() == ["small"])
        small = queue("hi")
        wait_until_none_is_active()
        assert end(heard, small) == "response.completed"
        for number in range(4):
            worker._hear(StopCounting(reply=f"large-{number}"))
        assert eventually(lambda: not worker._counter._questions)
        assert len(begun) == 2
        for number in range(5):
            ask(f"more-{number}", "a" * 8_000_000)
        assert eventually(lambda: answers() == ["small", "more-4"])
