"""Daphne, with the limits that a public streaming server needs.

Bytes go to the application as it reads, and to the client as it reads; only a few are buffered in either direction.
"""

import asyncio
import functools
import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

# The order matters: Daphne's module installs Twisted's asyncio reactor.
from daphne.server import Server as DaphneServer  # isort: skip
from daphne.endpoints import build_endpoint_description_strings
from daphne.http_protocol import HTTPFactory
from django.conf import settings
from django.db import Error as DatabaseError
from twisted.internet import defer, reactor
from twisted.internet.error import CannotListenError

from responses_api.database.threads import in_database_thread
from responses_api.readers.answer_create import readers_gone
from responses_api.readers.web_process import web_process
from responses_api.services.processes.publish_counts import publish_counts

from .channel import SERVER_NAME, Channel
from .connections import Connections
from .request import Inbox, Request

BACKLOG = 1024
SWITCH_SECONDS = 0.0005
READERS_SECONDS = 1.0
CHECK_SECONDS = 0.5
LARGE_BYTES = 1 << 20


class Factory(HTTPFactory):
    """Makes :class:`Channel` objects, which make :class:`Request` objects."""

    protocol = Channel

    def __init__(self, server: "Server") -> None:
        super().__init__(server)
        self.timeOut = None

    def buildProtocol(self, addr: Any) -> Any:
        protocol = super().buildProtocol(addr)
        protocol.connections = self.server.open_connections
        # The router reads all bodies; by default Twisted parses forms.
        protocol.requestFactory = functools.partial(Request, parsePOSTFormSubmission=False)
        return protocol


class Server(DaphneServer):
    """Listens, calls ``ready`` with its port, and runs until stopped. ``failure`` says why it could not listen.

    When it stops, it refuses requests, calls ``drain`` on a thread, which ends the generations of this process, and
    gives readers a second for their last events. Without ``drain``, responses have RESPONSES_GRACE_SECONDS to end.
    """

    def __init__(
        self,
        application: Any,
        *,
        host: str,
        port: int,
        ready: Callable[[int], None],
        drain: Callable[[], None] | None = None,
    ) -> None:
        endpoints = [
            f"{endpoint}:backlog={BACKLOG}" for endpoint in build_endpoint_description_strings(host=host, port=port)
        ]
        super().__init__(
            application,
            endpoints=endpoints,
            signal_handlers=True,
            server_name=SERVER_NAME,
            ready_callable=self._use_our_requests,
        )
        self.failure = ""
        self.open_connections = Connections()
        self._drain = drain
        # With the default of 5 ms, computing threads would delay the event loop ten times as long.
        sys.setswitchinterval(SWITCH_SECONDS)
        self._ready = ready

    def _use_our_requests(self) -> None:
        self.http_factory.buildProtocol = Factory(self).buildProtocol

    def listen_success(self, port: Any) -> None:
        super().listen_success(port)
        # The objects created so far are permanent: exclude them from further collections.
        gc.collect()
        gc.freeze()
        self.open_connections.fit_files()
        self._check_connections()
        self._ready(port.getHost().port)

    def _check_connections(self) -> None:
        clock: Any = reactor
        clock.callLater(CHECK_SECONDS, self._check_connections)
        self.open_connections.check()

    def create_application(self, protocol: Request, scope: dict[str, Any]) -> Inbox:
        """Start the application for a request whose headers have arrived."""
        inbox = Inbox(protocol)
        scope["asgi"] = {"version": "3.0"}
        application = self.application(scope, inbox.get, functools.partial(self.handle_reply, protocol))
        self.connections[protocol]["application_instance"] = asyncio.ensure_future(application)
        return inbox

    async def handle_reply(self, protocol: Request, message: dict[str, Any]) -> None:
        """ASGI's ``send``. It waits until the client has read what was sent before."""
        channel = getattr(protocol, "channel", None)
        await super().handle_reply(protocol, message)
        if message["type"] != "http.response.body" or channel is None:
            return
        if len(message.get("body", b"")) > LARGE_BYTES:
            self.open_connections.bound_unsent()
        if message.get("more_body", False):
            await channel.drained()

    def listen_error(self, failure: Any) -> None:
        reason = failure.value
        # The text of Twisted's error would repeat the address.
        self.failure = str(reason.socketError if isinstance(reason, CannotListenError) else reason)
        self.stop()

    def kill_all_applications(self) -> Any:
        """Daphne's hook at shutdown, while the event loop still runs."""
        return defer.Deferred.fromFuture(asyncio.ensure_future(self._end_applications()))

    async def _end_applications(self) -> None:
        """Let open streams end with an event, then cancel the remaining applications."""
        web_process.stop_admitting()
        if self._drain is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._drain)
            await self._wait_for_applications(READERS_SECONDS)
        else:
            await self._wait_for_applications(settings.RESPONSES_GRACE_SECONDS)
        web_process.release()
        await self._wait_for_applications(READERS_SECONDS)
        running = self._running()
        for application in running:
            application.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await readers_gone(READERS_SECONDS)
        with suppress(DatabaseError):
            await in_database_thread(publish_counts)

    async def _wait_for_applications(self, timeout: float) -> None:
        running = self._running()
        if running:
            await asyncio.wait(running, timeout=timeout)

    def _running(self) -> list["asyncio.Future[None]"]:
        applications = [details.get("application_instance") for details in self.connections.values()]
        return [application for application in applications if application is not None and not application.done()]
