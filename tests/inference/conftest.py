"""Engines for the tests: the real one, with the default model, and scripted ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from inference import MlxOptions, ModelEntry, ScriptedOptions, open_model
from inference.blas import preload_blas
from inference.scripted.engine import ScriptedEngine
from inference.scripted.tokenizer import ScriptedTokenizer
from tests.inference.recorder import Client, Recorder

BLAS_CACHE = Path(__file__).parents[2] / ".pytest_cache" / "d" / "responses-libraries"
# Before test modules import mlx at collection; afterwards it is too late.
preload_blas(BLAS_CACHE)


@pytest.fixture(scope="session")
def blas_cache() -> Path:
    return BLAS_CACHE


@pytest.fixture(scope="session")
def mlx(default_model: ModelEntry, blas_cache: Path) -> Iterator[Client]:
    """The only real engine of the session: two at once would starve each other."""
    recorder = Recorder()
    options = MlxOptions(batch_size=16, prefill_step=256, prompt_cache_bytes=200_000_000, blas_cache=blas_cache)
    engine, tokenizer = open_model(default_model, sink=recorder, options=options)
    engine.start()
    yield Client(engine, tokenizer, recorder)
    engine.close()


@pytest.fixture
def scripted(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A scripted engine; parametrize it indirectly with ScriptedOptions to set its options."""
    recorder = Recorder()
    engine = ScriptedEngine(sink=recorder, options=getattr(request, "param", ScriptedOptions()))
    engine.start()
    yield Client(engine, ScriptedTokenizer(), recorder)
    engine.close()
