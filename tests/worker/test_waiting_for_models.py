"""Requests for a model that is not loaded: streams open and say so, who leaves waits no longer, jobs stay queued."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import orjson
import pytest

from inference import ScriptedOptions
from inference.memory import NOTHING
from inference.scripted.engine import ScriptedEngine
from inference.types import ModelError
from responses_api import bus
from responses_api.bus.messages import ResponseEvents, ResponseRefused, ResponseResult, ResponseWaits
from responses_api.errors import ContextLengthExceeded, Overloaded
from responses_api.interruptions import StopReason
from responses_api.models import Response
from responses_api.models.store.response import ACTIVE
from responses_api.selectors.models import forget_live_workers
from responses_api.worker.hosting import ModelHost, ScriptedCatalogue
from responses_api.worker.runtime.pump import ChunkQueue
from responses_api.worker.runtime.worker import GenerationWorker

from .rows import Sent, end, last, queue, wait_until, wait_until_ended

pytestmark = pytest.mark.django_db(transaction=True)

FOOTPRINT = replace(NOTHING, weights=1000, loading=1000)

Start = Callable[..., GenerationWorker]


@pytest.fixture
def start(settings: Any) -> Iterator[Start]:
    """Starts a worker with memory for so many of the scripted models `a`, `b` and `c`; `a` is loaded."""
    settings.RESPONSES_ENGINE, settings.RESPONSES_LEASE_SECONDS = "scripted", 10.0  # no reader is lost meanwhile
    settings.RESPONSES_MODELS, settings.RESPONSES_DEFAULT_MODEL = ("a", "b", "c"), "a"
    workers: list[GenerationWorker] = []

    def started(models: int = 2, *, load_seconds: float = 0.0, context: int = 131_072) -> GenerationWorker:
        chunks = ChunkQueue()
        options = ScriptedOptions(load_seconds=load_seconds, context_length=context)
        host = ModelHost(
            chunks.put, catalogue=ScriptedCatalogue(footprint=FOOTPRINT, options=options), memory=models * 1000
        )
        host.scan()
        host.load_default()
        worker = GenerationWorker(host, chunks)
        workers.append(worker)
        worker.start()
        forget_live_workers()
        return worker

    yield started
    for worker in workers:
        worker.stop()


def messages_to(sent: Sent, public_id: str) -> list[Any]:
    return [message for group, message in list(sent) if group == bus.response_group(public_id)]


def events(sent: Sent, public_id: str) -> list[str]:
    """The types of the events of a stream, in order."""
    messages = [message for message in messages_to(sent, public_id) if isinstance(message, ResponseEvents)]
    return [kind for message in messages for kind, _ in message.events]


def test_three_models_in_turn_answer_all_requests(start: Start, sent: Sent) -> None:
    """Within memory for two; nothing fails, whatever has to be unloaded."""
    worker = start()
    ids: list[str] = []
    for name in "abcabcba":
        ids.append(queue("hello", model=name, stream=len(ids) % 2 == 0))
        worker.wake()
    wait_until_ended(worker)
    for public_id in ids:
        message = last(sent, public_id)
        kind = message.event[0] if isinstance(message, ResponseResult) else end(sent, public_id)
        assert kind == "response.completed"
    assert worker._host.budget.reserved <= 2000


def test_a_stream_opens_while_its_model_is_loaded_and_says_so(start: Start, sent: Sent) -> None:
    worker = start(load_seconds=0.3)
    public_id = queue("hello", model="b")
    worker.wake()
    wait_until(lambda: any(isinstance(message, ResponseWaits) for message in messages_to(sent, public_id)))
    assert events(sent, public_id) == ["response.created", "response.in_progress"]
    (waits,) = [message for message in messages_to(sent, public_id) if isinstance(message, ResponseWaits)]
    assert waits.what_for == "the model b is being loaded"
    wait_until_ended(worker)
    assert end(sent, public_id) == "response.completed"


def test_what_is_invalid_is_refused_before_its_model_is_loaded(start: Start, sent: Sent) -> None:
    worker = start(context=600)
    with patch.object(ScriptedEngine, "start", side_effect=AssertionError("it is loaded in vain")):
        public_id = queue("word " * 700, model="b")
        worker.wake()
        wait_until_ended(worker)
    refusal = last(sent, public_id)
    assert isinstance(refusal, ResponseRefused)
    assert isinstance(refusal.error.as_error(), ContextLengthExceeded)


def test_whoever_leaves_waits_no_longer(start: Start, sent: Sent) -> None:
    """At once, not when the model is loaded: streams, whole objects and jobs."""
    worker = start(load_seconds=1.0)
    for kind in ({"stream": True}, {"stream": False}):
        queue("hello", model="b", **kind)
    job = queue("hello", model="b", background=True)
    worker.wake(background=True)
    wait_until(lambda: len(worker._host["b"].waiting) == 3)
    for run in worker.table.live():
        worker._scheduler.stop(run, StopReason.CANCELLED if run.is_job else StopReason.LEFT)
    wait_until(lambda: not worker.table.count(), seconds=0.8)
    assert worker._host["b"].state == "loading"
    assert Response.objects.get(public_id=job).status == "cancelled"


def test_a_job_stays_queued_until_its_model_is_loaded(start: Start) -> None:
    worker = start(load_seconds=0.5)
    job = queue("hello", model="b", background=True)
    worker.wake(background=True)
    wait_until(lambda: worker._host["b"].state == "loading")
    assert Response.objects.get(public_id=job).status == "queued"
    wait_until(lambda: Response.objects.get(public_id=job).status == "completed")


def test_a_model_that_can_not_be_loaded_fails_its_requests_alone(start: Start, sent: Sent) -> None:
    """The stream that is open by an event, the whole object by a 503; a job waits in the queue. Others go on."""
    worker = start()
    begin = ScriptedEngine.start

    def fail(engine: ScriptedEngine, **arguments: Any) -> None:
        if engine.info.name == "b":
            raise ModelError("No such file: /secret")
        begin(engine, **arguments)

    with patch.object(ScriptedEngine, "start", fail):
        stream, whole = queue("hello", model="b"), queue("hello", model="b", stream=False)
        job = queue("hello", model="b", background=True)
        other = queue("hello", model="c")
        worker.wake(background=True)
        wait_until(lambda: not Response.objects.filter(background=False, status__in=ACTIVE).exists())
        wait_until(lambda: Response.objects.filter(public_id=job, attempt=1, worker="").exists())
        wait_until(lambda: not worker.table.count())
    assert events(sent, stream)[-2:] == ["error", "response.failed"]
    text = [message for message in messages_to(sent, stream) if isinstance(message, ResponseEvents)][-1].events[-1][1]
    message = orjson.loads(text)["response"]["error"]["message"]
    assert message == StopReason.NOT_LOADED.sentence
    result = last(sent, whole)
    assert isinstance(result, ResponseResult)
    assert result.error is not None
    assert isinstance(result.error.as_error(), Overloaded)
    assert end(sent, other) == "response.completed"
    row = Response.objects.get(public_id=job)
    assert (row.status, row.worker, row.lost_attempts) == ("queued", "", 0)


def test_jobs_on_a_model_that_has_to_make_room_resume_later(start: Start, sent: Sent) -> None:
    """An interactive request for another one doesn't wait until they have ended."""
    worker = start(1)
    job = queue("[[tokens: 60]][[slow: 0.02]]", model="a", background=True)
    worker.wake(background=True)
    wait_until(lambda: worker._host["a"].load().running)
    now = queue("hello", model="b")
    worker.wake()
    wait_until(lambda: any(getattr(message, "last", False) for message in messages_to(sent, now)))
    assert end(sent, now) == "response.completed"
    assert Response.objects.get(public_id=job).status == "in_progress"
    wait_until(lambda: Response.objects.get(public_id=job).status == "completed", seconds=20)
    assert orjson.loads(Response.objects.get(public_id=job).body)["usage"]["output_tokens"] == 60
