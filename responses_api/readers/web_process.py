"""Housekeeping of a web process: it sends heartbeats, and watches the jobs that its readers wait for."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Protocol

import structlog
from django.conf import settings

from responses_api import bus
from responses_api.bus.listen import listen
from responses_api.database.threads import in_database_thread
from responses_api.errors import Overloaded
from responses_api.ids import new_id
from responses_api.models import Process
from responses_api.selectors.jobs import JobState, job_states
from responses_api.selectors.keys import lapsed_keys
from responses_api.services.jobs.recover_jobs import recover_background_jobs
from responses_api.services.processes.announce_process import Announcement, announce_process
from responses_api.services.processes.freed_memory import return_freed_memory
from responses_api.services.processes.periodic import HEARTBEATS_PER_LEASE, Periodic
from responses_api.services.processes.publish_counts import publish_counts

log = structlog.get_logger(__name__)


class Waiting(Protocol):
    """A reader that waits for a job."""

    public_id: str
    is_of_job: bool
    """Whether the job continues without this process."""
    key_id: int | None
    """The key that the stream was opened with."""

    def lock_out(self) -> None: ...

    def observe(self, state: JobState) -> None: ...

    def give_up(self) -> None: ...


class WebProcess:
    """One per process. Starts with the first reader.

    The heartbeat has its own thread and database connection, so that neither admissions nor a busy event loop delay it.
    Readers are informed of their jobs' states on the event loop.
    """

    def __init__(self) -> None:
        self.id = new_id("web_")
        self._readers: set[Waiting] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = asyncio.Lock()
        self._periodic: list[Periodic] = []
        self._exchange: bus.Exchange | None = None
        self.is_stopping = False
        """Whether requests are refused because the process is about to end."""

    async def start(self) -> None:
        """Announce the process, now and periodically, unless it was started before.

        Raises :class:`Overloaded` while the broker is away: the next call tries again.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._stop()
            self._loop, self._starting = loop, asyncio.Lock()
        if self._periodic:
            return
        async with self._starting:
            if self._periodic:
                return
            if self._exchange is None:
                self._exchange = bus.Exchange(await listen(bus.process_group(self.id)))
            await in_database_thread(announce_process, self._announcement())
            self._begin(loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        seconds = settings.RESPONSES_LEASE_SECONDS / HEARTBEATS_PER_LEASE
        heartbeat = (partial(self._announce, loop), partial(self._check_readers, loop))
        self._periodic = [
            Periodic("web-heartbeat", *heartbeat, seconds=seconds, own_connection=True),
            Periodic("web-recovery", recover_background_jobs, publish_counts, return_freed_memory, seconds=seconds),
        ]
        for periodic in self._periodic:
            periodic.start()

    def _stop(self) -> None:
        for periodic in self._periodic:
            periodic.stop()
        self._periodic, self._exchange = [], None

    def listen(self, public_id: str) -> bus.Inbox:
        """The messages to the only reader of a foreground response, from now on, until :meth:`leave`."""
        if self._exchange is None:
            raise RuntimeError("The process has not started.")
        return self._exchange.listen(bus.response_group(public_id))

    def leave(self, public_id: str) -> None:
        """Undo :meth:`listen`."""
        if self._exchange is not None:
            self._exchange.leave(bus.response_group(public_id))

    def add(self, reader: Waiting) -> None:
        """Watch the job that ``reader`` waits for."""
        self._readers.add(reader)

    def discard(self, reader: Waiting) -> None:
        """Stop watching the job of ``reader``."""
        self._readers.discard(reader)

    def stop_admitting(self) -> None:
        """The process is about to end: refuse requests, and end the streams of background jobs, to resume elsewhere."""
        self.is_stopping = True
        for reader in list(self._readers):
            if reader.is_of_job:
                reader.give_up()

    def refuse_when_stopping(self) -> None:
        """Raise :class:`Overloaded` when the process is about to end."""
        if self.is_stopping:
            raise Overloaded("This server process is stopping. Send the request again.")

    def release(self) -> None:
        """The process ends: end all readers."""
        for reader in list(self._readers):
            reader.give_up()

    def _announcement(self) -> Announcement:
        return Announcement(id=self.id, kind=Process.Kind.WEB, running=len(self._readers))

    # On the heartbeat's thread

    def _announce(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop.is_closed():
            for periodic in self._periodic:
                periodic.stop()
            return
        announce_process(self._announcement())

    def _check_readers(self, loop: asyncio.AbstractEventLoop) -> None:
        readers = list(self._readers)
        if readers and not loop.is_closed():
            states = job_states({reader.public_id for reader in readers})
            key_ids = {reader.key_id for reader in readers if reader.key_id is not None}
            lapsed = lapsed_keys(key_ids) if key_ids else set()
            loop.call_soon_threadsafe(observe, readers, states, lapsed)


def observe(readers: Iterable[Waiting], states: Mapping[str, JobState], lapsed: Collection[int]) -> None:
    """Pass to readers the states of their jobs, or that their key is no longer valid. Errors of a reader are logged."""
    for reader in readers:
        try:
            if reader.key_id in lapsed:
                reader.lock_out()
            else:
                reader.observe(states[reader.public_id])
        except Exception:  # the other readers must be informed
            log.exception("web.reader_failed", response=reader.public_id)


web_process = WebProcess()
