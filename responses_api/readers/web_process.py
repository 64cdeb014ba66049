"""What a web process does beside answering: it says that it lives, and watches the jobs its readers wait for."""

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
from responses_api.selectors.jobs import Standing, standings
from responses_api.selectors.keys import lapsed_keys
from responses_api.services.jobs.recover_jobs import recover_background_jobs
from responses_api.services.processes.announce_process import Announcement, announce_process
from responses_api.services.processes.freed_memory import return_freed_memory
from responses_api.services.processes.periodic import HEARTBEATS_PER_LEASE, Periodic
from responses_api.services.processes.publish_counts import publish_counts

log = structlog.get_logger(__name__)


class Waiting(Protocol):
    """Somebody who waits for a job."""

    public_id: str
    is_of_job: bool
    """Whether what it waits for goes on without this process."""
    key_id: int | None
    """The key that it reads by."""

    def lock_out(self) -> None: ...

    def observe(self, standing: Standing) -> None: ...

    def give_up(self) -> None: ...


class WebProcess:
    """One a process. Starts by itself with the first reader.

    Its heartbeat has a thread and a database connection of its own: neither requests that are admitted nor an event
    loop that is busy delay it. What it finds of the readers' jobs they are told on the event loop.
    """

    def __init__(self) -> None:
        self.id = new_id("web_")
        self._readers: set[Waiting] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = asyncio.Lock()
        self._periodic: list[Periodic] = []
        self._listening: bus.Subscription | None = None
        self.is_stopping = False
        """Nothing is admitted any more."""

    async def start(self) -> None:
        """Announce the process and keep announcing it; nothing when that happens already.

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
            # The Redis layer looks for new subscriptions ten times a second while it has none: keep one.
            if self._listening is None:
                self._listening = await listen(bus.process_group(self.id))
            await in_database_thread(announce_process, self._announcement())
            self._begin(loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        seconds = settings.RESPONSES_LEASE_SECONDS / HEARTBEATS_PER_LEASE
        beats = (partial(self._announce, loop), partial(self._look, loop))
        self._periodic = [
            Periodic("web-heartbeat", *beats, seconds=seconds, own_connection=True),
            Periodic("web-recovery", recover_background_jobs, publish_counts, return_freed_memory, seconds=seconds),
        ]
        for periodic in self._periodic:
            periodic.start()

    def _stop(self) -> None:
        for periodic in self._periodic:
            periodic.stop()
        self._periodic, self._listening = [], None

    def add(self, reader: Waiting) -> None:
        """Watch the job that ``reader`` waits for."""
        self._readers.add(reader)

    def discard(self, reader: Waiting) -> None:
        """Watch no longer."""
        self._readers.discard(reader)

    def stop_admitting(self) -> None:
        """The process is about to end: it takes no more, and who reads a background job is to do so elsewhere."""
        self.is_stopping = True
        for reader in list(self._readers):
            if reader.is_of_job:
                reader.give_up()

    def refuse_when_stopping(self) -> None:
        """Raise :class:`Overloaded` when the process is about to end."""
        if self.is_stopping:
            raise Overloaded("This server process is stopping. Send the request again.")

    def release(self) -> None:
        """The process ends: nobody waits any longer."""
        for reader in list(self._readers):
            reader.give_up()

    def _announcement(self) -> Announcement:
        return Announcement(id=self.id, kind=Process.Kind.WEB, running=len(self._readers))

    # The heartbeat's thread

    def _announce(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop.is_closed():
            for periodic in self._periodic:
                periodic.stop()
            return
        announce_process(self._announcement())

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        readers = list(self._readers)
        if readers and not loop.is_closed():
            found = standings({reader.public_id for reader in readers})
            key_ids = {reader.key_id for reader in readers if reader.key_id is not None}
            lapsed = lapsed_keys(key_ids) if key_ids else set()
            loop.call_soon_threadsafe(observe, readers, found, lapsed)


def observe(readers: Iterable[Waiting], found: Mapping[str, Standing], lapsed: Collection[int]) -> None:
    """Tell readers how their jobs stand, or that their key has ended. One that fails keeps no other from it."""
    for reader in readers:
        try:
            if reader.key_id in lapsed:
                reader.lock_out()
            else:
                reader.observe(found[reader.public_id])
        except Exception:  # the others must be told
            log.exception("web.reader_failed", response=reader.public_id)


web_process = WebProcess()
