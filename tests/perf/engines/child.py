"""A generator in a process of its own, which is idle while others are measured: a line of JSON each way."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from responses_site.setting_kinds import BASE_DIR

SamplingKind = Literal["greedy", "same", "own"]
"""How tokens are chosen: the likeliest; at random, by all sequences alike; at random, each sequence in its own way."""
TEMPERATURE, TOP_P = 0.8, 0.95
_START = "import sys; from tests.perf.engines.{} import main; main(*sys.argv[1:])"
"""Imported, not run by `-m`: its functions can be traced by the module's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Sequences to generate side by side."""

    texts: tuple[str, ...]
    """A user message each."""
    tokens: int
    """Most tokens of each."""
    sampling: SamplingKind = "greedy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How quickly it went."""

    steps_per_second: float
    """Tokens a second of each sequence while all were generating; 0.0 when they never were."""
    tokens_per_second: float
    """Tokens of all over the whole time, prompts included."""


@dataclass(slots=True)
class Meter:
    """Counts the tokens of sequences that run side by side."""

    sequences: int
    began: float = field(default_factory=time.perf_counter)
    _started: set[Any] = field(default_factory=set)
    _tokens: int = 0
    _from: tuple[float, int] | None = None
    _to: tuple[float, int] | None = None

    def note(self, tokens: Mapping[Any, int], *, ended: bool) -> None:
        """A step made so many tokens, by sequence; ``ended`` says that a sequence ended with it."""
        self._tokens += sum(tokens.values())
        if self._from is None:
            self._started.update(tokens)
            if len(self._started) == self.sequences:
                self._from = time.perf_counter(), self._tokens
        elif ended and self._to is None:
            self._to = time.perf_counter(), self._tokens

    def rates(self) -> Rates:
        """The rates, when all have ended."""
        steps = 0.0
        if self._from is not None and self._to is not None:
            steps = (self._to[1] - self._from[1]) / self.sequences / (self._to[0] - self._from[0])
        return Rates(steps_per_second=steps, tokens_per_second=self._tokens / (time.perf_counter() - self.began))


class Child:
    """The parent's side."""

    def __init__(self, module: str, model: Path, libraries: Path, *, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START.format(module), str(model), str(libraries)],
            cwd=BASE_DIR,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._line() != "ready":
            raise RuntimeError(f"{module} did not start")

    def run(self, work: Work) -> Rates:
        """Generate, and say how quickly it went."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asdict(work)) + "\n")
        self.process.stdin.flush()
        return Rates(**json.loads(self._line()))

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def serve(run: Callable[[Work], Rates]) -> None:
    """The child's side: answer until standard input ends."""
    print("ready", flush=True)
    for line in sys.stdin:
        values = json.loads(line)
        print(json.dumps(asdict(run(Work(**values | {"texts": tuple(values["texts"])})))), flush=True)
