"""An error on the engine's thread, outside of one sequence, ends the engine and every live request."""

import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from inference import GenerationRequest, ModelEntry, ModelError, Sampling
from inference.engine import batch, mlx_engine, model_loading
from inference.engine.mlx_engine import MlxEngine
from inference.memory import StateCost
from inference.prefix_cache.layout import Layout
from tests.inference.recorder import Recorder

SECRET = 4711
"""A token of the prompts, which must not appear in the log."""


class Weights:
    """A stand-in for a loaded model."""

    model = None
    weights_bytes = 0
    state_cost = StateCost()


class BrokenBatch:
    """A batch whose step fails, as it does when memory runs out."""

    def __init__(self, loaded: Weights, info: Any, **options: Any) -> None:
        self.loaded, self.requests, self.is_closed = loaded, 0, False

    def __len__(self) -> int:
        return self.requests

    def add(self, request: GenerationRequest) -> list[Any]:
        self.requests += 1
        return []

    def step(self) -> list[Any]:
        raise RuntimeError("out of memory")

    def close(self) -> None:
        closed.append(True)


closed: list[bool] = []


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Weights]]:
    """The models that were loaded, none of which the test keeps alive."""
    models: list[weakref.ref[Weights]] = []

    def load(directory: Path, **options: Any) -> Weights:
        weights = Weights()
        models.append(weakref.ref(weights))
        return weights

    monkeypatch.setattr(model_loading, "load_model", load)
    monkeypatch.setattr(batch, "Batch", BrokenBatch)
    monkeypatch.setattr(Layout, "of_model", lambda model: Layout(()))
    closed.clear()
    return models


def entry() -> ModelEntry:
    facts = {"name": "broken", "digest": "d", "context_length": 100, "vocab_size": 9999, "path": Path("nowhere")}
    return SimpleNamespace(**facts, temperature=1.0, top_p=1.0)  # type: ignore[return-value]


def test_an_engine_that_fails_ends_its_requests(
    loaded: list[weakref.ref[Weights]], caplog: pytest.LogCaptureFixture
) -> None:
    """The log has their ids and the reason, and nothing of their content."""
    recorder = Recorder()
    engine = MlxEngine(entry(), sink=recorder)
    engine.start()
    request = GenerationRequest(id="resp_1.1.1", prompt=(SECRET,), max_tokens=5, sampling=Sampling())
    engine.submit(request)
    last = recorder.last("resp_1.1.1")
    assert (last.finish, last.error) == ("error", "The engine stopped.")
    assert not engine.is_running
    with pytest.raises(ModelError, match="not running"):
        engine.submit(request)
    messages = [record.getMessage() for record in caplog.records]
    assert "the engine of broken stopped, and with it the requests resp_1.1.1" in messages
    assert "out of memory" in caplog.text
    assert str(SECRET) not in caplog.text
    engine.close()
    assert closed == [True]


def test_an_engine_that_failed_does_not_keep_its_model(
    loaded: list[weakref.ref[Weights]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory need not be enough for two of them when it is loaded again."""
    monkeypatch.setattr(mlx_engine, "log", Mock())  # a test's log keeps the frames of errors
    recorder = Recorder()
    engine = MlxEngine(entry(), sink=recorder)
    engine.start()
    engine.submit(GenerationRequest(id="resp_1.1.1", prompt=(1,), max_tokens=5, sampling=Sampling()))
    recorder.wait("resp_1.1.1")
    engine.close()
    assert [weights() for weights in loaded] == [None]
