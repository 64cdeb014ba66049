"""Computes the masks of constrained sequences within a time budget, so that a costly grammar delays no other sequence.

llguidance can't be interrupted, and a very ambiguous grammar may take seconds for one mask. So masks are computed on a
separate thread. A mask that takes too long fails its own sequence: the thread is abandoned and ends when the mask is
done, and a new thread serves the other sequences. Standard library only.
"""

import contextlib
import logging
import os
import queue
import sys
import threading
import time

from inference.constraints.matching import Matcher

log = logging.getLogger(__name__)

MASK_SECONDS = 0.1
"""Most CPU time of one mask. The costliest mask of an ordinary grammar takes 0.03 s, a typical one 0.0003 s."""
BURST_SECONDS = 1.0
"""Most CPU time that the masks of a sequence may take beyond their share."""
SHARE_SECONDS = 0.01
"""A sequence's share of CPU time per token."""
_WALL_SECONDS = 10.0
"""Most time to wait for one mask, however busy the machine is."""
_LOOK_SECONDS = 0.05
"""How often the time of an unfinished mask is checked."""


class Masks:
    """Computes the masks of one engine. Only the engine's thread calls it. Errors go to the matcher."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None

    def next(self, matcher: Matcher, token: int | None) -> bytes:
        """Advance by the token chosen last, if any; returns the next mask, or b"" if the matcher has failed."""
        if matcher.has_failed:
            return b""
        worker = self._worker
        if worker is None:
            worker = self._worker = _Worker()
        answer = worker.ask(matcher, token)
        if answer is None:
            self._worker = None
            worker.abandon()
            matcher.fail_as_slow()
            return b""
        mask, seconds = answer
        if not matcher.spend(seconds, share=SHARE_SECONDS, burst=BURST_SECONDS):
            matcher.fail_as_slow()
            return b""
        return mask

    def close(self) -> None:
        """End the thread, now or after its current mask."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None


class _Worker:
    """One thread, which computes one mask at a time."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Matcher, int | None] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[bytes, float]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="masks", daemon=True)
        self._thread.start()

    def ask(self, matcher: Matcher, token: int | None) -> tuple[bytes, float] | None:
        """The mask and the CPU time that it took; None if it takes too long."""
        began, spent = time.monotonic(), self._cpu_seconds()
        self._jobs.put((matcher, token))
        while True:
            with contextlib.suppress(queue.Empty):
                return self._answers.get(timeout=_LOOK_SECONDS)
            if self._cpu_seconds() - spent > MASK_SECONDS or time.monotonic() - began > _WALL_SECONDS:
                return None

    def abandon(self) -> None:
        """End the thread after its current mask, at the lowest priority."""
        if sys.platform == "linux" and self._thread.native_id is not None:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._thread.native_id, 19)
        self.end()

    def end(self) -> None:
        self._jobs.put(None)

    def _cpu_seconds(self) -> float:
        """The CPU time of the thread, whatever else the machine does; real time on other systems than Linux."""
        if sys.platform == "linux" and self._thread.ident is not None:
            return time.clock_gettime(time.pthread_getcpuclockid(self._thread.ident))
        return time.monotonic()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            matcher, token = job
            began = time.thread_time()
            mask = b""
            try:
                if token is not None:
                    matcher.advance(token)
                mask = matcher.mask()
            except Exception:  # the engine waits for an answer in any case
                log.exception("a mask could not be computed")
                matcher.fail_as_slow()
            self._answers.put((mask, time.thread_time() - began))
