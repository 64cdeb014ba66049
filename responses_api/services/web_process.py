"""What a web process does beside answering: it says that it lives, and watches the jobs its readers wait for."""

import asyncio
from typing import Protocol

import structlog
from django.conf import settings
from django.db import Error as DatabaseError

from responses_api import bus
from responses_api.errors import Overloaded
from responses_api.ids import new_id
from responses_api.models import Process
from responses_api.selectors.jobs import Standing, standings

from .announce_process import Announcement, announce_process
from .database_threads import in_database_thread
from .recover_jobs import recover_background_jobs

log = structlog.get_logger(__name__)

HEARTBEATS_A_LEASE = 4


class Waiting(Protocol):
    """Somebody who waits for a job."""

    public_id: str
    is_of_job: bool
    """Whether what it waits for goes on without this process."""

    def observe(self, standing: Standing) -> None: ...

    def give_up(self) -> None: ...


class WebProcess:
    """One a process. Starts by itself with the first reader."""

    def __init__(self) -> None:
        self.id = new_id("web_")
        self._readers: set[Waiting] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._listening: bus.Subscription | None = None
        self.is_stopping = False
        """Nothing is admitted any more."""

    async def start(self) -> None:
        """Announce the process and keep announcing it; nothing when that happens already."""
        loop = asyncio.get_running_loop()
        if self._task is not None and self._loop is loop and not self._task.done():
            return
        self._loop = loop
        self._task = loop.create_task(self._beat())
        # The Redis layer looks for new subscriptions ten times a second while it has none: keep one.
        self._listening = await bus.subscribe(bus.process_group(self.id))
        await in_database_thread(announce_process, self._announcement())

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

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(settings.RESPONSES_LEASE_SECONDS / HEARTBEATS_A_LEASE)
            try:
                await in_database_thread(announce_process, self._announcement())
                readers = list(self._readers)
                if readers:
                    found = await in_database_thread(standings, {reader.public_id for reader in readers})
                    for reader in readers:
                        reader.observe(found[reader.public_id])
                await in_database_thread(recover_background_jobs)
            except DatabaseError as error:
                log.warning("web.heartbeat_failed", error=str(error))
            except Exception:  # without the next beat this process counts as gone
                log.exception("web.heartbeat_failed")


web_process = WebProcess()
