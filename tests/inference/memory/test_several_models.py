"""Engines of tiny models with little memory: what waits says the same as alone, and unloading gives memory back."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference import GenerationRequest, MlxOptions, ModelEntry, Registry, Sampling, open_model, read_footprint
from inference.engine.scheduler import Scheduler
from inference.memory import MemoryBudget, ModelMemory
from inference.types import Engine
from tests.inference.recorder import Recorder
from tests.inference.tiny_llama import install_tiny_llama

pytestmark = pytest.mark.real_model

BATCH_SIZE, PREFILL_STEP = 4, 64
NO_END = Sampling(temperature=0.0, logit_bias=((2, -100.0),))


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> ModelEntry:
    pytest.importorskip("mlx.core")
    work = tmp_path_factory.mktemp("tiny")
    return install_tiny_llama(Registry(work / "data"), "tiny", work=work)


class Place:
    """An engine of the tiny model, with memory for one sequence of so many tokens."""

    def __init__(self, entry: ModelEntry, blas_cache: Path, *, tokens: int) -> None:
        self.footprint = read_footprint(entry.path, memory=1 << 40, batch_size=BATCH_SIZE, prefill_step=PREFILL_STEP)
        self.budget = MemoryBudget(self.footprint.needs(tokens))
        self.recorder = Recorder()
        self.engine: Engine
        self.engine, _ = open_model(
            entry,
            sink=self.recorder,
            options=MlxOptions(
                batch_size=BATCH_SIZE, prefill_step=PREFILL_STEP, prompt_cache_bytes=1 << 30, blas_cache=blas_cache
            ),
            memory=ModelMemory(account=self.budget.open_account(), footprint=self.footprint),
        )
        self.engine.start()

    def submit(self, name: str, *, prompt: int = 20, tokens: int = 10, priority: int = 0) -> str:
        self.engine.submit(
            GenerationRequest(
                id=name,
                prompt=tuple(3 + (number * 7 + len(name)) % 256 for number in range(prompt)),
                max_tokens=tokens,
                sampling=NO_END,
                priority=priority,
                cache_scope=name,
            )
        )
        return name


@pytest.fixture
def places(entry: ModelEntry, blas_cache: Path) -> Iterator[list[Place]]:
    """One with little memory, one with as much as it wants."""
    made = [Place(entry, blas_cache, tokens=512), Place(entry, blas_cache, tokens=1 << 20)]
    yield made
    for place in made:
        place.engine.close()
        assert place.budget.reserved == 0


def test_sequences_that_had_to_wait_say_what_they_say_alone(
    places: list[Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They outgrow the memory together, and one after the other goes on; each starts once, and ends at its limit."""
    tight, roomy = places
    waited: list[str] = []
    put_back = Scheduler.put_back

    def note(scheduler: Scheduler, request: GenerationRequest) -> None:
        waited.append(request.id)
        put_back(scheduler, request)

    monkeypatch.setattr(Scheduler, "put_back", note)
    for place in places:
        for name in ("one", "second", "a third"):
            place.submit(name, prompt=200, tokens=300, priority=int(name == "second"))
    for name in ("one", "second", "a third"):
        assert tight.recorder.tokens(name) == roomy.recorder.tokens(name)
        assert tight.recorder.text(name) == roomy.recorder.text(name)
        chunks = tight.recorder.wait(name)
        assert [chunk.started for chunk in chunks].count(True) == 1
        assert (chunks[-1].finish, sum(len(chunk.tokens) for chunk in chunks)) == ("length", 300)
    assert set(waited) == {"second", "a third"}


def test_what_never_fits_is_refused_and_others_go_on(places: list[Place]) -> None:
    tight, _ = places
    long = tight.submit("long", prompt=3000)
    assert tight.recorder.last(long).error == "The server has too little memory for a sequence as long as this one."
    assert len(tight.recorder.tokens(tight.submit("short"))) == 10


def test_cached_prompts_give_way_to_sequences(places: list[Place]) -> None:
    """They take no more than is left."""
    tight, _ = places
    for number in range(6):
        tight.recorder.wait(tight.submit(f"prompt {number}", prompt=200 + number))
    account = tight.budget._accounts[0]
    assert 0 < tight.engine.load().memory_cache.nbytes <= tight.budget.total - account.weights
    tight.recorder.wait(tight.submit("long", prompt=400))
    assert account.cache <= tight.budget.total - account.weights - account.state


PROGRAM = """
import ctypes, resource, sys
from pathlib import Path
from inference import GenerationRequest, MlxOptions, Registry, Sampling, open_model
data, blas = sys.argv[1:]
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
options = MlxOptions(batch_size=1, blas_cache=Path(blas))
def run(name):
    engine, _ = open_model(Registry(data).get_model(name), sink=lambda chunks: None, options=options)
    engine.start()
    high = resident()
    engine.close()
    ctypes.CDLL(None).malloc_trim(0)
    return high
run("small")
before = resident()
highs = [run(name) for name in ("a", "b", "a", "b")]
print(before, min(highs), resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and calls glibc; macOS frees by itself")
def test_unloading_gives_memory_back_each_time(tmp_path: Path, blas_cache: Path) -> None:
    """Models of 100 MB in turn: none is left behind."""
    pytest.importorskip("mlx.core")
    registry = Registry(tmp_path / "data")
    for name, vocabulary in (("small", 300), ("a", 400_000), ("b", 400_000)):
        install_tiny_llama(registry, name, work=tmp_path, vocabulary=vocabulary)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "data"), str(blas_cache)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    before, high, after = map(int, done.stdout.split())
    assert high - before > 90_000_000, "each was in memory"
    assert after - before < 40_000_000, "and none is any more"
