"""Which sequences of an engine there is memory for: who may begin, and who has to wait when those that run grow.

Only the engine's thread uses it. Standard library only.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from inference.memory import ModelMemory, StateCost, rounded
from inference.types import Chunk, GenerationRequest

NO_MEMORY = "The server has too little memory for a sequence as long as this one."


@dataclass(slots=True)
class _Running:
    request: GenerationRequest
    length: int
    """Tokens of its prompt and its answer."""
    tokens: list[int] = field(default_factory=list)
    """Those that it has generated since it began, or began again."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A sequence that there is no memory for any more."""

    request: GenerationRequest
    """It can be resumed by this one."""
    is_over: bool
    """Whether there never will be memory for it."""


class MemoryGate:
    """Guarantees: what the states of all running sequences take is reserved, or the engine is told which of them to
    stop. The one that began first is not stopped while others of its engine run, so that all end at some time.
    """

    def __init__(self, memory: ModelMemory, cost: StateCost) -> None:
        self._account = memory.account
        self._step_per_token = memory.footprint.step_per_token
        self._cost = cost
        self._running: dict[str, _Running] = {}
        """In the order in which they began."""
        self._has_started: set[str] = set()
        """Sequences whose first chunk was emitted, running or stopped."""
        self._longest = 0
        """Tokens for which the reserved states have room."""
        self._is_stale = False
        """Whether something has ended, or grown out of what is reserved."""

    def __contains__(self, request_id: str) -> bool:
        """Whether memory is reserved for a sequence."""
        return request_id in self._running

    def admits(self, request: GenerationRequest) -> bool:
        """Reserve what a request needs to begin; False if it has to wait. One that never fits need not wait: nothing is
        reserved for it.
        """
        length = len(request.prompt) + len(request.generated)
        if not self._reserve(len(self._running) + 1, max(self._longest, length + 1)):
            return self._never_fits(length)
        self._running[request.id] = _Running(request, length)
        return True

    @property
    def lacks_memory(self) -> bool:
        """Whether the last request had to wait."""
        return self._account.lacks > 0

    def nothing_waits(self) -> None:
        """It has been cancelled: no memory is needed that isn't there."""
        self._account.reserve_state(self._account.state)

    def note(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Count what a step has made. Returns the chunks for the caller, who has seen the first one of a sequence that
        was stopped and begins again.
        """
        return [chunk for chunk in map(self._count, chunks) if chunk is not None]

    def _count(self, chunk: Chunk) -> Chunk | None:
        running = self._running.get(chunk.request_id)
        if running is not None and chunk.tokens:
            running.tokens += chunk.tokens
            running.length += len(chunk.tokens)
            self._is_stale = self._is_stale or running.length >= self._longest
        if chunk.finish:
            self._is_stale = self._running.pop(chunk.request_id, None) is not None or self._is_stale
            self._has_started.discard(chunk.request_id)
        elif chunk.started and chunk.request_id in self._has_started:
            return None
        elif chunk.started:
            self._has_started.add(chunk.request_id)
        return chunk

    def outgrown(self) -> list[Stopped]:
        """Reserve what is needed now. Returns the sequences to be stopped at once, since there is no memory for them:
        background before interactive, and of these the one that began last.
        """
        stopped: list[Stopped] = []
        if not self._is_stale:
            return stopped
        self._is_stale = False
        while not self._reserve(len(self._running), max((r.length + 1 for r in self._running.values()), default=0)):
            last = max(reversed(self._running.values()), key=lambda running: running.request.priority)
            request = last.request
            is_over = len(self._running) == 1 and self._never_fits(last.length)
            del self._running[request.id]
            stopped.append(Stopped(replace(request, generated=(*request.generated, *last.tokens)), is_over))
        return stopped

    def _never_fits(self, length: int) -> bool:
        """Whether there is too little memory for a sequence even when no other model and no other sequence has any."""
        return self._size(1, length + 1) > self._account.most_state

    def _reserve(self, sequences: int, longest: int) -> bool:
        if not self._account.reserve_state(self._size(sequences, longest)):
            return False
        self._longest = rounded(longest)
        return True

    def _size(self, sequences: int, longest: int) -> int:
        return self._cost.of(longest, sequences=sequences) + self._step_per_token * rounded(longest)
