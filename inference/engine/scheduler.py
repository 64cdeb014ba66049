"""The queue in front of an engine: requests that wait, run, or are to be cancelled.

The threads of callers and the engine's thread meet only here. Standard library only.
"""

import heapq
import threading
import time
from collections.abc import Callable

from inference.types import EngineLoad, GenerationRequest, ModelError


class Scheduler:
    """Guarantees: at most `slots` run, each id is live once, and admission is by priority. Within a priority the cache
    scopes take turns: a scope with many waiting requests doesn't delay the first request of another.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._changed = threading.Condition()
        self._open = False
        self._woken = False
        self._arrivals = 0
        self._heap: list[tuple[int, int, int, str]] = []
        self._turns: dict[int, dict[str, int]] = {}
        """By priority, the last turn of each waiting scope."""
        self._turn: dict[int, int] = {}
        """By priority, the turn of the request admitted last."""
        self._waiting: dict[str, GenerationRequest] = {}
        self._running: set[str] = set()
        self._places: dict[str, tuple[int, int, int]] = {}
        """Of waiting and running requests, their places in the order of admission."""
        self._to_cancel: set[str] = set()
        self._step_began: float | None = None

    # Callers' side: any thread.

    def submit(self, request: GenerationRequest) -> None:
        with self._changed:
            if not self._open:
                raise ModelError("The engine is not running.")
            if request.id in self._waiting or request.id in self._running:
                raise ValueError(f"request {request.id!r} is live already")
            turn = self._next_turn(request.priority, request.cache_scope)
            self._places[request.id] = (request.priority, turn, self._arrivals)
            self._arrivals += 1
            self._queue(request)
            self._wake()

    def cancel(self, request_id: str) -> None:
        with self._changed:
            if request_id in self._waiting or request_id in self._running:
                self._to_cancel.add(request_id)
                self._wake()

    def close(self) -> None:
        """Refuse new requests and wake the engine, which then drains the live ones."""
        with self._changed:
            self._open = False
            self._wake()

    def wake(self) -> None:
        """Have the engine look around, for something else than its requests has changed."""
        with self._changed:
            self._wake()

    def load(self) -> EngineLoad:
        """The load, without the figures of the caches."""
        with self._changed:
            running, waiting = len(self._running), len(self._waiting)
        began = self._step_began
        return EngineLoad(
            running=running,
            waiting=waiting,
            slots=self.slots,
            free=max(0, self.slots - running - waiting),
            step_seconds=0.0 if began is None else time.monotonic() - began,
        )

    # Engine's side: its one thread.

    @property
    def is_open(self) -> bool:
        return self._open

    def open(self) -> None:
        with self._changed:
            self._open = True

    def begin_step(self) -> None:
        """A step begins; its age is part of the load until it ends."""
        self._step_began = time.monotonic()

    def end_step(self) -> None:
        """The step has ended; its chunks are still to be delivered."""
        self._step_began = None

    def wait(self, timeout: float | None) -> bool:
        """Return True at the next submit, cancel or close (at once after one since the last wait), or False after
        `timeout`.
        """
        with self._changed:
            if not self._woken:
                self._changed.wait(timeout)
            woken, self._woken = self._woken, False
            return woken

    def admit(self, *, fits: Callable[[GenerationRequest], bool] | None = None) -> list[GenerationRequest]:
        """Move the next requests from waiting to running, as far as slots allow; in order.

        The first that does not fit waits, and those after it wait with it. `fits` is called without a lock.
        """
        admitted: list[GenerationRequest] = []
        while (request := self._next()) is not None and (fits is None or fits(request)):
            with self._changed:
                del self._waiting[request.id]
                self._running.add(request.id)
                priority, turn, _ = self._places[request.id]
                self._turn[priority] = turn
            admitted.append(request)
        return admitted

    def _next(self) -> GenerationRequest | None:
        """The request that would be admitted next; None without one, or without a slot."""
        with self._changed:
            while self._heap and len(self._running) < self.slots:
                *_, id = self._heap[0]
                if id in self._waiting:
                    return self._waiting[id]
                heapq.heappop(self._heap)  # it was cancelled, or admitted
        return None

    def put_back(self, request: GenerationRequest) -> None:
        """A running request waits again, in its old place."""
        with self._changed:
            self._running.discard(request.id)
            self._queue(request)

    def take_cancelled(self) -> tuple[list[str], list[str]]:
        """Ids to cancel: those still waiting (forgotten by this call), and those running (the engine releases them)."""
        with self._changed:
            cancelled, self._to_cancel = self._to_cancel, set()
            waiting = [id for id in cancelled if self._waiting.pop(id, None) is not None]
            return waiting, [id for id in cancelled if id in self._running]

    def release(self, request_id: str) -> None:
        """The sequence has ended; its slot is free."""
        with self._changed:
            self._running.discard(request_id)
            self._places.pop(request_id, None)
            self._to_cancel.discard(request_id)

    def drain(self) -> list[str]:
        """Forget everything and return the ids that were live: each still needs its final chunk."""
        with self._changed:
            live = [*self._running, *self._waiting]
            self._step_began = None
            self._heap.clear()
            self._waiting.clear()
            self._running.clear()
            self._places.clear()
            self._to_cancel.clear()
            return live

    def _queue(self, request: GenerationRequest) -> None:
        self._waiting[request.id] = request
        heapq.heappush(self._heap, (*self._places[request.id], request.id))

    def _next_turn(self, priority: int, owner: str) -> int:
        """The scope's next turn: after its last one, and not before the current one."""
        now = self._turn.get(priority, 0)
        if not self._waiting:
            self._turns.clear()
        turns = self._turns.setdefault(priority, {})
        turns[owner] = max(now, turns.get(owner, now - 1) + 1)
        return turns[owner]

    def _wake(self) -> None:
        self._woken = True
        self._changed.notify()
