"""Work that is repeated periodically on its own thread."""

import threading
from collections.abc import Callable

import structlog
from django.db import Error as DatabaseError
from django.db import connections

from responses_api.database.threads import use_own_connection, with_fresh_connection

log = structlog.get_logger(__name__)

HEARTBEATS_PER_LEASE = 4
"""A lease expires when this many heartbeats in a row are late."""


class Periodic:
    """Calls functions one after the other, every ``seconds`` seconds, until it is stopped.

    An exception is logged; the next function is called, and the failed one again in the next round. Only functions that
    may delay each other share a thread: a heartbeat has its own. With ``own_connection`` the thread has a database
    connection outside of the pool.
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
        self._due = threading.Event()
        """Ends a pause early."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread: the first call comes after ``first`` seconds, by default ``seconds``."""
        self._thread.start()

    def call_soon(self) -> None:
        """Make the next calls now, or after those that are being made, and from then on at the usual pace."""
        self._due.set()

    @property
    def is_stopping(self) -> bool:
        """Whether a function that takes long should end early."""
        return self._stopped.is_set()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs and still calls the functions."""
        return self._thread.is_alive() and not self.is_stopping

    def wait(self, seconds: float) -> bool:
        """Sleep until ``seconds`` have passed or :meth:`stop` is called; returns whether it was called."""
        return self._stopped.wait(seconds)

    def stop(self, timeout: float = 0.0) -> None:
        """Make no further calls, and wait up to ``timeout`` seconds for a call that is running."""
        self._stopped.set()
        self._due.set()
        if timeout and self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        if self._own_connection:
            use_own_connection()
        try:
            pause = self._first
            while True:
                self._due.wait(pause)
                if self.is_stopping:
                    return
                self._due.clear()
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
        except Exception:  # whatever it was, the next call must be made
            log.exception("periodic.failed", thread=self._name)
