"""Compiles constraints on separate threads: a large one takes a second, and no other sequence may wait for it.

Standard library only.
"""

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from inference.constraints.matching import Matcher, Vocabulary
from inference.types import Constraint, GenerationRequest, ModelError

THREADS = 2
"""How many constraints are compiled at once. Compiling doesn't hold the interpreter lock."""
COMPILE_SECONDS = 30.0
"""A request whose constraint isn't compiled after this time fails."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    request: GenerationRequest
    matcher: Future[Matcher]
    deadline: float


class Compiler:
    """The requests of one engine that wait for their matchers. Only the engine's thread calls it."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: dict[str, _Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, request: GenerationRequest, constraint: Constraint, vocabulary: Vocabulary) -> Matcher | None:
        """The matcher, for a cached constraint; None for a request that now waits for one."""
        matcher = None if request.generated else vocabulary.cached_matcher(constraint)
        if matcher is None:
            self._pool = self._pool or ThreadPoolExecutor(THREADS, thread_name_prefix="compiler")
            future = self._pool.submit(_compiled, vocabulary, constraint, request.generated)
            self._waiting[request.id] = _Waiting(request, future, time.monotonic() + COMPILE_SECONDS)
        return matcher

    def ready(self) -> list[tuple[GenerationRequest, Matcher | ModelError]]:
        """Remove and return the requests that need not wait any more, each with its matcher or an error."""
        now = time.monotonic()
        ended = [entry for entry in self._waiting.values() if entry.matcher.done() or now > entry.deadline]
        for entry in ended:
            del self._waiting[entry.request.id]
        return [(entry.request, _outcome(entry.matcher)) for entry in ended]

    def cancel(self, request_id: str) -> bool:
        """Remove a waiting request; false if it isn't waiting."""
        entry = self._waiting.pop(request_id, None)
        if entry is None:
            return False
        entry.matcher.cancel()
        return True

    def wait(self, *, seconds: float) -> None:
        """Return when a request is ready, or after `seconds`."""
        wait([entry.matcher for entry in self._waiting.values()], timeout=seconds, return_when=FIRST_COMPLETED)

    def close(self) -> None:
        """Drop the waiting requests."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        self._waiting.clear()


def _compiled(vocabulary: Vocabulary, constraint: Constraint, generated: Sequence[int]) -> Matcher:
    matcher = vocabulary.matcher(constraint)
    if generated and matcher.advance_while_allowed(generated) < len(generated):
        raise ModelError("The answer that is to be continued breaks its constraint.")
    return matcher


def _outcome(future: Future[Matcher]) -> Matcher | ModelError:
    if future.cancel() or not future.done():
        return ModelError(
            "The constraint took too long to compile. Use a smaller schema, fewer tools, or a smaller grammar."
        )
    try:
        return future.result()
    except ModelError as error:
        return error
    except Exception as error:  # of the library that compiles
        return ModelError(f"The constraint can't be compiled ({type(error).__name__}).")
