"""A host of scripted models: as many are loaded as there is memory for, and waiting requests are called back."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import pytest

from inference import ScriptedOptions
from inference.memory import NOTHING, Footprint, StateCost
from inference.scripted.engine import ScriptedEngine
from inference.scripted.tokenizer import ScriptedTokenizer
from inference.types import ModelError
from responses_api.interruptions import Interrupted
from responses_api.worker.hosting import ModelHost, ModelState, ScriptedCatalogue
from tests.worker.rows import wait_until

SIZE = 1000
STATE = StateCost(fixed=10)
FOOTPRINT = replace(NOTHING, weights=SIZE, loading=SIZE, state=STATE)
PER_MODEL = FOOTPRINT.needs(512)

Start = Callable[..., ModelHost]


@dataclass(eq=False)
class Request:
    """A request for a model, and the calls that it received."""

    model: str
    is_job: bool = False
    request_id: str = "resp_1.1"
    calls: list[Any] = field(default_factory=list)

    def hold(self, host: ModelHost) -> "Request":
        if host.hold(self, ready=lambda: self.calls.append("ready"), failed=self.calls.append):
            self.calls.append("ready")
        return self

    @property
    def is_ready(self) -> bool:
        return self.calls == ["ready"]


@pytest.fixture
def start(settings: Any) -> Iterator[Start]:
    """Starts a host with memory for a number of the models `a`, `b` and `c`."""
    hosts: list[ModelHost] = []

    def started(models: float = 2, *, footprint: Footprint = FOOTPRINT, load_seconds: float = 0.0) -> ModelHost:
        catalogue = ScriptedCatalogue(footprint=footprint, options=ScriptedOptions(load_seconds=load_seconds))
        host = ModelHost(lambda chunks: None, catalogue=catalogue, memory=int(models * PER_MODEL))
        hosts.append(host)
        host.scan()
        host.start()
        return host

    settings.RESPONSES_ENGINE, settings.RESPONSES_MODELS = "scripted", ("a", "b", "c")
    yield started
    for host in hosts:
        host.close()


def states(host: ModelHost) -> str:
    """The first characters of the states of all models."""
    return "".join(model.state[0] for model in host)


def test_three_models_in_turn_within_memory_for_two(start: Start) -> None:
    """The least recently used one is unloaded, and its memory released."""
    host = start()
    for name, expected in (("a", "iuu"), ("b", "iiu"), ("a", "iiu"), ("c", "iui"), ("b", "uii")):
        request = Request(name).hold(host)
        wait_until(lambda request=request: request.is_ready)  # type: ignore[misc]
        host.release(request)
        assert states(host) == expected
        assert host.budget.reserved <= host.budget.total
        assert host.budget.reserved == expected.count("i") * SIZE


def test_a_model_in_use_stays_until_it_is_released(start: Start) -> None:
    """Requests that arrive for it meanwhile wait until the other model was used."""
    host = start(1)
    drained: list[str] = []
    host._loader._drain = drained.append
    first = Request("a").hold(host)
    wait_until(lambda: first.is_ready)
    other = Request("b").hold(host)
    wait_until(lambda: drained)
    later = Request("a").hold(host)
    time.sleep(0.05)
    assert (other.calls, later.calls, set(drained), states(host)[:2]) == ([], [], {"a"}, "au")
    host.release(first)
    wait_until(lambda: other.is_ready)
    assert later.calls == []
    host.release(other)
    wait_until(lambda: later.is_ready)


def test_a_drained_model_stays_drained_although_the_other_one_was_used_earlier(start: Start) -> None:
    """Otherwise of two models in constant use neither would ever make room for a third."""
    host = start(2)
    requests = [Request(name).hold(host) for name in ("a", "a", "b")]
    wait_until(lambda: all(request.is_ready for request in requests))
    requests.append(Request("b").hold(host))
    third = Request("c").hold(host)
    wait_until(lambda: host["a"].is_drained)
    host.release(requests[0])
    assert host["a"].last_used > host["b"].last_used
    time.sleep(0.3)  # longer than the loader waits between decisions
    assert (host["a"].is_drained, host["b"].is_drained) == (True, False)
    host.release(requests[1])
    wait_until(lambda: third.is_ready)


def test_a_drained_model_is_used_again_when_the_other_request_is_withdrawn(start: Start) -> None:
    host = start(1)
    first = Request("a").hold(host)
    wait_until(lambda: first.is_ready)
    other = Request("b").hold(host)
    wait_until(lambda: host["a"].is_drained)
    later = Request("a").hold(host)
    assert host.withdraw(other)
    wait_until(lambda: later.is_ready)
    (call,) = other.calls
    assert isinstance(call, Interrupted)
    assert not host.withdraw(other)


def test_jobs_wait_until_there_is_memory(start: Start) -> None:
    """They drain no model, and none is claimed for a model without memory."""
    host = start(1)
    first = Request("a").hold(host)
    wait_until(lambda: first.is_ready)
    assert host.takes_jobs("a")
    assert not host.takes_jobs("b")
    job = Request("b", is_job=True).hold(host)
    time.sleep(0.05)
    assert (job.calls, host["a"].is_drained) == ([], False)
    host.release(first)
    wait_until(lambda: job.is_ready)


def test_all_requests_that_wait_for_a_model_are_called_back(start: Start) -> None:
    """Except for a withdrawn one; the model is loaded nevertheless."""
    host = start(load_seconds=0.2)
    requests = [Request("a").hold(host) for _ in range(3)]
    wait_until(lambda: host["a"].state is ModelState.LOADING)
    assert host.withdraw(requests[1])
    wait_until(lambda: requests[0].is_ready and requests[2].is_ready)
    assert not requests[1].is_ready
    assert host["a"].state is ModelState.ACTIVE


def test_a_load_that_fails_ends_only_the_requests_of_its_model(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """Its memory is released, and it can be loaded again."""
    host = start()
    begin = ScriptedEngine.start

    def fail(engine: ScriptedEngine, **arguments: Any) -> None:
        if engine.info.name == "a":
            raise ModelError("It is damaged.")
        begin(engine, **arguments)

    with patch.object(ScriptedEngine, "start", fail):
        broken, other = Request("a", request_id="resp_x.1").hold(host), Request("b").hold(host)
        wait_until(lambda: broken.calls and other.is_ready)
    assert [str(call) for call in broken.calls] == ["It is damaged."]
    assert host.budget.reserved == SIZE
    again = Request("a").hold(host)
    wait_until(lambda: again.is_ready)


def test_a_tokenizer_is_loaded_with_its_model(start: Start) -> None:
    """The first request need not wait for it; one that fails is an error of the requests alone."""
    loaded: list[Any] = []

    def load(tokenizer: ScriptedTokenizer) -> None:
        loaded.append(tokenizer)
        raise ModelError("The tokenizer can't be loaded.")

    with patch.object(ScriptedTokenizer, "load", load):
        request = Request("a").hold(start())
        wait_until(lambda: request.is_ready and bool(loaded))


def test_an_engine_that_stops_is_replaced(start: Start) -> None:
    """Without a request for it, and with no more memory than before."""
    host = start()
    first = Request("a").hold(host)
    wait_until(lambda: first.is_ready)
    stopped = host["a"].engine
    stopped.close()
    wait_until(lambda: host["a"].is_running and host["a"].engine is not stopped)
    again = Request("a").hold(host)
    wait_until(lambda: again.is_ready)
    assert host.budget.reserved == SIZE


def test_an_idle_model_is_unloaded_after_its_time_to_live(start: Start, settings: Any) -> None:
    """Counted from its last use. Pinned models are loaded at the start and stay loaded."""
    settings.RESPONSES_MODEL_TTL_SECONDS, settings.RESPONSES_MODEL_PINS = 0.2, ("c",)
    host = start(3)
    wait_until(lambda: states(host) == "iuu")  # pinned models come first
    assert [model.name for model in host] == ["c", "a", "b"]
    request = Request("a").hold(host)
    wait_until(lambda: request.is_ready)
    time.sleep(0.3)
    assert states(host) == "iau"
    host.release(request)
    wait_until(lambda: states(host) == "iuu")
    time.sleep(0.3)
    assert host["c"].state is ModelState.IDLE


def test_memory_is_reserved_for_pinned_models(start: Start, settings: Any) -> None:
    """A model that doesn't fit beside them is not served, nor is a pinned one beside the earlier ones."""
    settings.RESPONSES_MODEL_PINS = ("b", "c")
    host = start(1.5)
    assert host.names == ["b"]
    assert host["b"].is_pinned
    for name in ("a", "c"):
        assert host[name].state is ModelState.TOO_LARGE
        assert "beside the models of RESPONSES_MODEL_PINS (RESPONSES_MEMORY_BYTES)" in host[name].refusal
        refused = Request(name).hold(host)
        assert [str(call) for call in refused.calls] == [host[name].refusal]


def test_a_model_that_never_fits_is_announced_with_the_reason(start: Start) -> None:
    """And a server whose default model it is does not start."""
    host = start(0.9)
    assert host.names == []
    refusal = host.announcements[0]["refusal"]
    assert refusal.startswith("The model 'a' needs ")
    with pytest.raises(ModelError, match="RESPONSES_MEMORY_BYTES"):
        host.load_default()


def test_a_context_is_as_long_as_there_is_memory_for(start: Start) -> None:
    footprint = replace(FOOTPRINT, state=StateCost(layers=((1, None),)))
    host = start(3, footprint=footprint)
    info = host["a"].engine.info
    assert (
        info.context_length
        == host.announcements[0]["context_length"]
        == host.budget.total - SIZE - (host.budget.total - SIZE) % 256
    )
    assert info.own_context_length == 131_072


def test_a_model_whose_files_are_gone_goes_when_nobody_uses_it(start: Start, settings: Any) -> None:
    host = start()
    request = Request("a").hold(host)
    wait_until(lambda: request.is_ready)
    settings.RESPONSES_MODELS = ("b", "c")
    assert host.scan()
    assert host.names == ["b", "c"]
    assert host["a"].engine.is_running
    host.release(request)
    wait_until(lambda: not host.scan() and "a" not in [model.name for model in host])
    assert not host.budget.reserved
    with pytest.raises(ModelError, match="no model 'a'"):
        host["a"]
    gone = Request("a").hold(host)
    assert isinstance(gone.calls[0], ModelError)


def test_what_waits_when_the_host_closes_is_told(start: Start) -> None:
    host = start(1, load_seconds=0.0)
    first = Request("a").hold(host)
    wait_until(lambda: first.is_ready)
    waiting = Request("b").hold(host)
    host.close()
    (call,) = waiting.calls
    assert isinstance(call, Interrupted)
    assert not any(thread.name == "model-loader" for thread in threading.enumerate())
