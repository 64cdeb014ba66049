"""Work that is done again and again on a thread of its own."""

import threading
from collections.abc import Callable

import structlog
from django.db import Error as DatabaseError
from django.db import connections

from responses_api.database.threads import use_own_connection, with_fresh_connection

log = structlog.get_logger(__name__)

HEARTBEATS_A_LEASE = 4
"""So many may be late in a row before a lease is over."""


class Periodic:
    """Calls functions in turn, every so many seconds, until it is stopped.

    A function that raises is logged; the next one is called all the same, and it again the next time. Only what may
    wait for each other shares a thread: a heartbeat has one for itself. With ``own_connection`` the thread has a
    database connection that no other can be waiting on, or holding.
    """

    def __init__(
        self,
        name: str,
        *work: Callable[[], object],
        seconds: float,
        first: float | None = None,
        own_connection: bool = False,
    ) -> None:
        self._name = name
        self._work = work
        self._seconds = seconds
        self._first = seconds if first is None else first
        self._own_connection = own_connection
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin: the first call comes after ``first`` seconds, which are ``seconds`` when nothing else is said."""
        self._thread.start()

    @property
    def is_stopping(self) -> bool:
        """Whether a function that takes long should end early."""
        return self._stopped.is_set()

    @property
    def is_alive(self) -> bool:
        """Whether its functions are still called."""
        return self._thread.is_alive() and not self.is_stopping

    def wait(self, seconds: float) -> bool:
        """Sleep, but no longer than until it is to stop; says whether it is."""
        return self._stopped.wait(seconds)

    def stop(self, timeout: float = 0.0) -> None:
        """Call nothing any more, and wait up to ``timeout`` seconds for a call that is under way."""
        self._stopped.set()
        if timeout and self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        if self._own_connection:
            use_own_connection()
        try:
            pause = self._first
            while not self._stopped.wait(pause):
                for function in self._work:
                    self._call(function)
                pause = self._seconds
        finally:
            connections.close_all()  # of this thread

    def _call(self, function: Callable[[], object]) -> None:
        try:
            with_fresh_connection(function)
        except DatabaseError as error:
            log.warning("periodic.database_unavailable", thread=self._name, error=str(error))
        except Exception:  # the next call must come, whatever it was
            log.exception("periodic.failed", thread=self._name)
