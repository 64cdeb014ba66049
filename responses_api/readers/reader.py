"""What an open stream needs of whoever reads a response for it."""

from collections.abc import AsyncIterator
from typing import Protocol

from responses_api.streaming import EncodedEvent


class Reader(Protocol):
    """Reads the events of one response in order, without a gap or a double."""

    async def opened(self) -> None:
        """Wait until the stream may be opened. Raises the :class:`ApiError` that the request is refused with."""

    def batches(self, *, keepalive: float) -> AsyncIterator[list[EncodedEvent]]:
        """The events, in batches as they come; an empty batch after ``keepalive`` silent seconds. Ends by itself.

        Raises :class:`ReadingStopped` when the process ends and the response does not.
        """

    def failure(self, message: str) -> list[EncodedEvent]:
        """The events that end an open stream after an error; none when the response goes on without it."""


class ReadingStopped(Exception):
    """The process ends; the response does not, and can be read elsewhere."""
