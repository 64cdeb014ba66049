"""A worker whose surroundings fail: every claimed row ends, and every reader learns of it."""

import threading
from typing import Any
from unittest.mock import Mock, patch

import orjson
import pytest
from django.db import OperationalError

from responses_api.bus.messages import ResponseRefused
from responses_api.errors import Overloaded
from responses_api.interruptions import Interrupted
from responses_api.models import Response
from responses_api.models.store.response import ACTIVE
from responses_api.services.jobs.leases import claim_responses
from responses_api.services.prompts.assemble_history import COMPACTING
from responses_api.worker.generation.prepare_generation import Compacting, prepare_generation
from responses_api.worker.generation.run import Run
from responses_api.worker.hosting import HostedModel, ModelHost
from responses_api.worker.runtime import claimer, preparer
from responses_api.worker.runtime.pump import ChunkQueue
from responses_api.worker.runtime.worker import GenerationWorker
from tests.turns import ApiUser

from .rows import Sent, end, last, queue, wait_until, wait_until_ended, wait_until_none_is_active

pytestmark = pytest.mark.django_db(transaction=True)

NEXT = Compacting.next
REFUSE = Run.refuse


def refuse_without_database(run: Any, error: Any) -> None:
    """``Run.refuse`` while the database is unavailable."""
    with patch.object(type(run.lease), "rows", side_effect=OperationalError("still away")):
        REFUSE(run, error)


def test_a_database_that_fails_while_requests_begin_leaves_none_of_them_waiting(
    host: ModelHost, chunks: ChunkQueue, sent: Sent
) -> None:
    """Neither the request it fails for, nor those that were claimed with it."""
    broken: list[str] = []

    def fail_for_the_first(*, row: Response, **arguments: Any) -> Any:
        if orjson.loads(row.request)["input"] == "0":
            broken.append(row.public_id)
            raise OperationalError("terminating connection")
        return prepare_generation(row=row, **arguments)

    ApiUser.make()
    ids = [queue(str(number)) for number in range(3)]
    worker = GenerationWorker(host, chunks)
    with (
        patch.object(preparer, "prepare_generation", fail_for_the_first),
        patch.object(Run, "refuse", refuse_without_database),
    ):
        worker.start()
        wait_until_none_is_active()
    worker.stop()
    assert broken == ids[:1]
    refusal = last(sent, ids[0])
    assert isinstance(refusal, ResponseRefused)
    assert isinstance(refusal.error.as_error(), Overloaded)
    assert all(end(sent, public_id) == "response.completed" for public_id in ids[1:])


def test_a_claim_during_the_stop_is_released(host: ModelHost, chunks: ChunkQueue) -> None:
    """As if it had not been made: the job neither starts nor counts as lost."""
    ApiUser.make()
    job = queue("[[tokens: 3]]", background=True)
    worker = GenerationWorker(host, chunks)
    claimed = threading.Event()

    def claim_late(**arguments: Any) -> list[Response]:
        rows = claim_responses(**arguments)
        if rows:
            worker.drain()
            claimed.set()
        return rows

    with patch.object(claimer, "claim_responses", claim_late):
        worker.start()
        assert claimed.wait(10)
        worker.stop()
    row = Response.objects.get(public_id=job)
    assert (row.attempt, row.status, row.worker, row.lost_attempts) == (1, "queued", "", 0)


def test_a_request_whose_engine_stops_under_it_fails_instead_of_waiting(
    worker: GenerationWorker, host: ModelHost, sent: Sent
) -> None:
    """Its reader gets `response.failed`."""
    (model,) = host

    def stop_then_refuse(request: Any) -> None:
        engine.close()
        type(engine).submit(engine, request)

    engine = model.engine
    with patch.object(engine, "submit", stop_then_refuse):
        public_id = queue("hello")
        worker.wake()
        wait_until_none_is_active()
    worker.drain()
    assert end(sent, public_id) == "response.failed"


def test_an_engine_that_has_stopped_is_replaced(worker: GenerationWorker, host: ModelHost, sent: Sent) -> None:
    """A new engine answers the next request."""
    (model,) = host
    stopped = model.engine
    stopped.close()
    assert not model.is_running
    public_id = queue("hello")
    worker.wake()
    wait_until_none_is_active()
    worker.drain()
    assert end(sent, public_id) == "response.completed"
    assert model.engine is not stopped


def break_engine(model: HostedModel) -> None:
    """Let the engine's thread fail in its next step."""
    engine = model.engine
    with patch.object(engine, "_cancel", side_effect=RuntimeError("out of memory")):
        wait_until(lambda: not engine.is_running)


def test_an_engine_that_fails_ends_its_requests_and_starts_again_by_itself(
    worker: GenerationWorker, host: ModelHost, sent: Sent, caplog: pytest.LogCaptureFixture
) -> None:
    """No request is needed for that. A background job resumes on the new engine."""
    (model,) = host
    failed = model.engine
    live = queue("[[slow: 0.02]] [[tokens: 200]] private")
    job = queue("[[slow: 0.02]] [[tokens: 60]] private", background=True)
    worker.wake(background=True)
    wait_until(lambda: failed.load().running == 2)
    break_engine(model)
    wait_until(lambda: model.is_running and model.engine is not failed)
    wait_until_ended(worker)
    assert end(sent, live) == "response.failed"
    assert Response.objects.get(public_id=job).status == "completed"
    (line,) = [record.getMessage() for record in caplog.records if "and with it the requests" in record.getMessage()]
    assert live in line
    assert job in line
    assert "private" not in caplog.text


def test_an_engine_that_keeps_failing_is_started_after_a_pause(host: ModelHost) -> None:
    """Meanwhile nothing is claimed for its model, and a request for it is refused at once."""
    (model,) = host
    host.start()
    first = model.engine
    first.close()
    wait_until(lambda: model.is_running and model.engine is not first)
    model.engine.close()
    wait_until(lambda: model.is_pausing)
    assert host.names == []
    errors: list[Exception] = []
    assert not host.hold(Mock(model=model.name), ready=lambda: None, failed=errors.append)
    assert "starts in 1 s" in str(errors[0])
    wait_until(lambda: model.is_running)
    assert host.names == [model.name]


def test_a_closed_host_starts_nothing_again(host: ModelHost) -> None:
    """Its engines were closed on purpose, and a request for a model is refused at once."""
    (model,) = host
    host.start()
    host.close()
    assert not model.is_running
    errors: list[Exception] = []
    assert not host.hold(Mock(model=model.name), ready=lambda: None, failed=errors.append)
    assert isinstance(errors[0], Interrupted)


def test_a_worker_forgets_ended_runs(worker: GenerationWorker, sent: Sent) -> None:
    """Otherwise it would accept no more after some hundreds. Their last events can still be requested."""
    ids = [queue("hi"), queue("hi"), queue("[[fail: So it is.]]")]
    worker.wake()
    wait_until_ended(worker)
    wait_until(lambda: all(public_id in worker.ended for public_id in ids))


def test_requests_that_are_slow_to_prepare_delay_no_others(worker: GenerationWorker, sent: Sent) -> None:
    """Large requests and compactions, however many: a small request starts and ends meanwhile."""
    resume = threading.Event()
    held: list[str] = []

    def wait_if_large(*, row: Response, **arguments: Any) -> Any:
        if len(row.request) > 100_000:
            held.append(row.public_id)
            resume.wait(20)
        return prepare_generation(row=row, **arguments)

    def wait_for_next(compacting: Compacting) -> Any:
        held.append("compacting")
        resume.wait(20)
        return NEXT(compacting)

    def small_has_ended() -> bool:
        worker.wake()
        return not Response.objects.filter(public_id=small, status__in=ACTIVE).exists()

    with (
        patch.object(preparer, "prepare_generation", wait_if_large),
        patch.object(Compacting, "next", wait_for_next),
    ):
        try:
            for number in range(6):
                queue(f"{number}" + "a" * 200_000)
                queue(f"{number}", context_management=[{"type": "compaction", "compact_threshold": 1}])
            worker.wake()
            small = queue("small")
            wait_until(small_has_ended)
            assert len(held) == 4
            assert COMPACTING.size() > 0
        finally:
            resume.set()
        wait_until_none_is_active()
    assert end(sent, small) == "response.completed"
    worker.drain()
    assert COMPACTING.size() == 0
