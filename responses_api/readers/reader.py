"""The interface of readers, which streams use."""

from collections.abc import AsyncIterator
from typing import Protocol

from responses_api.streaming import EncodedEvent


class Reader(Protocol):
    """Reads the events of one response in order, each exactly once."""

    @property
    def comment(self) -> str:
        """What a stream says while it is silent: in most cases nothing more than that it is alive."""

    async def opened(self) -> None:
        """Wait until the stream can be opened. Raises the :class:`ApiError` of a request that is refused."""

    def batches(self, *, keepalive: float) -> AsyncIterator[list[EncodedEvent]]:
        """The events, in batches as they come; an empty batch after ``keepalive`` silent seconds. Ends by itself.

        Raises :class:`ReadingStopped` when the process ends and the response does not.
        """

    def failure(self, message: str) -> list[EncodedEvent]:
        """The events that end an open stream after an error; none when the response continues without it."""


class ReadingStopped(Exception):
    """The process is stopping; the response continues, and can be read elsewhere."""
