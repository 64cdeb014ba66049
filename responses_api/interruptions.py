"""Why a response ends before its answer does, and how its preparation is interrupted."""

from collections.abc import Callable
from enum import StrEnum


class StopReason(StrEnum):
    """Why a worker stops a run."""

    LEFT = "left"
    """Its only reader has gone: nobody is told anything."""
    CANCELLED = "cancelled"
    LOST = "lost"
    """The worker no longer holds the lease: whoever holds it decides what becomes of the response."""
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    TOO_LARGE = "too_large"
    """It has made an event that the log of a job can't hold."""
    FAULT = "fault"
    """The server's own error."""

    @property
    def sentence(self) -> str:
        """What a client reads as the reason."""
        return SENTENCES.get(self, FAILED)


FAILED = "The server failed to generate this response. Send the request again."
SENTENCES = {
    StopReason.TIMEOUT: "The response took longer than this server allows. Ask for a shorter one, or try again later.",
    StopReason.SHUTDOWN: "The server is stopping. Send the request again.",
    StopReason.LOST: "The server lost its hold on this response. Send the request again.",
    StopReason.TOO_LARGE: (
        "The response has an event with more bytes than this server keeps (RESPONSES_EVENTS_MAX_BYTES)."
    ),
}


class Interrupted(Exception):
    """Nobody waits any longer for what is being prepared."""


Check = Callable[[], None]
"""Called between the steps of what takes long. Raises :class:`Interrupted` when nobody waits for it any longer."""


def unchecked() -> None:
    """The check of what is finished in any case."""
