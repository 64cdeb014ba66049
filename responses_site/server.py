"""Daphne, with the limits that a public streaming server needs: bodies are bounded, stalled readers are cut off."""

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
from daphne.http_protocol import HTTPFactory, WebRequest
from django.conf import settings
from django.db import Error as DatabaseError
from twisted.internet import defer, reactor
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from responses_api.errors import ServerError
from responses_api.services.answer_create import readers_gone
from responses_api.services.database_threads import in_database_thread
from responses_api.services.publish_counts import publish_counts
from responses_api.services.web_process import web_process

from .http_channel import SERVER_NAME, Channel, envelope, unreadable

BACKLOG = 1024
READ_BYTES = 1 << 20
SWITCH_SECONDS = 0.0005
READERS_SECONDS = 1.0
# A client that names a root path would move every address; and there is no protocol here to change to.
IGNORED_HEADERS = (b"Daphne-Root-Path", b"Upgrade")


@implementer(IPushProducer)
class Request(WebRequest):
    """A request whose body is bounded and whose reader must read.

    Twisted tells a push producer when the socket's buffer is full: without one, Daphne keeps whatever a reader doesn't
    take. A reader that takes nothing for ``RESPONSES_STREAM_WRITE_TIMEOUT_SECONDS`` is cut off.
    """

    method: bytes
    _stalled: Any = None
    _producing = False
    _received = 0

    def process(self) -> Any:
        """Hand the request to the application, its method in the capitals that ASGI has."""
        self.method = self.method.upper()
        for name in IGNORED_HEADERS:
            self.requestHeaders.removeHeader(name)
        return super().process()

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Daphne's hook for what no application answers: a header that HTTP doesn't allow, or a fault of ours."""
        error = unreadable() if status < 500 else ServerError("The server had an error while it processed the request.")
        headers, content = envelope(error)
        self.handle_reply({"type": "http.response.start", "status": error.status, "headers": headers})
        self.handle_reply({"type": "http.response.body", "body": content})

    def handleContentChunk(self, data: bytes) -> None:
        """Keep no more of a body than the router needs to see that it is too large."""
        if self._received <= settings.RESPONSES_BODY_MAX_BYTES:
            super().handleContentChunk(data)
        self._received += len(data)

    def handle_reply(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body" and self.method == b"HEAD":
            # Twisted holds back the first piece only, and the next answer on the connection would begin in the second.
            message = {**message, "body": b""}
        if message["type"] == "http.response.body" and not self.finished and self.channel is not None:
            more = message.get("more_body", False)
            if more and not self._producing:
                self._producing = True
                self.registerProducer(self, True)
            elif not more and self._producing:
                self._stop_producing()
        super().handle_reply(message)

    def pauseProducing(self) -> None:
        """The reader's buffer is full."""
        if self._stalled is None:
            clock: Any = reactor
            self._stalled = clock.callLater(settings.RESPONSES_STREAM_WRITE_TIMEOUT_SECONDS, self._cut_off)

    def resumeProducing(self) -> None:
        """The reader has read."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def stopProducing(self) -> None:
        """The connection is gone."""
        self.resumeProducing()

    def connectionLost(self, reason: Any) -> None:
        self.resumeProducing()
        super().connectionLost(reason)

    def _stop_producing(self) -> None:
        self.resumeProducing()
        self._producing = False
        self.unregisterProducer()

    def _cut_off(self) -> None:
        self._stalled = None
        if self.channel is not None:
            self.channel.forceAbortClient()


class Factory(HTTPFactory):
    """Makes our channels, and these our requests."""

    protocol = Channel

    def buildProtocol(self, addr: Any) -> Any:
        protocol = super().buildProtocol(addr)
        # Bodies are the router's business, whatever they call themselves: Twisted would read forms, on the event loop,
        # and close the connection over those it can't read.
        protocol.requestFactory = functools.partial(Request, parsePOSTFormSubmission=False)
        return protocol


class Server(DaphneServer):
    """Listens, calls ``ready`` with its port, and runs until stopped. ``failure`` says why it could not listen.

    Told to stop, it admits nothing more and calls ``drain`` on a thread, which ends the generations of this process,
    and gives readers a moment to take their last events. Without ``drain``, responses have a while to end by
    themselves.
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
            request_buffer_size=READ_BYTES,
            server_name=SERVER_NAME,
            ready_callable=self._use_our_requests,
        )
        self.failure = ""
        self._drain = drain
        # A thread that computes would keep the event loop waiting ten times as long.
        sys.setswitchinterval(SWITCH_SECONDS)
        self._ready = ready

    def _use_our_requests(self) -> None:
        self.http_factory.buildProtocol = Factory(self).buildProtocol

    def listen_success(self, port: Any) -> None:
        super().listen_success(port)
        # What has been made so far stays: the collector need not go through it again and again.
        gc.collect()
        gc.freeze()
        self._ready(port.getHost().port)

    def listen_error(self, failure: Any) -> None:
        reason = failure.value
        # Twisted's says once more where.
        self.failure = str(reason.socketError if isinstance(reason, CannotListenError) else reason)
        self.stop()

    def kill_all_applications(self) -> Any:
        """Daphne's hook for the end, while the loop still runs."""
        return defer.Deferred.fromFuture(asyncio.ensure_future(self._end_applications()))

    async def _end_applications(self) -> None:
        """Let the streams that are open end with an event, then end whatever is left."""
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
        found = [details.get("application_instance") for details in self.connections.values()]
        return [application for application in found if application is not None and not application.done()]
