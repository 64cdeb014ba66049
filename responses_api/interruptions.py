"""The reasons why a worker stops a response early, and the interruption of its preparation."""

from collections.abc import Callable
from enum import StrEnum


class StopReason(StrEnum):
    """Why a worker stops a run."""

    LEFT = "left"
    """Its only reader has left: nothing is published."""
    CANCELLED = "cancelled"
    LOST = "lost"
    """The worker has lost the lease, and the process that has it now continues or ends the response."""
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    NOT_LOADED = "not_loaded"
    """Its model can't be loaded."""
    TOO_LARGE = "too_large"
    """An event is too large for the log of a job."""
    ERROR = "error"
    """An error of the server."""

    @property
    def sentence(self) -> str:
        """The message for the client."""
        return SENTENCES.get(self, FAILED)


FAILED = "The server failed to generate this response. Send the request again."
SENTENCES = {
    StopReason.TIMEOUT: "The response took longer than this server allows. Ask for a shorter one, or try again later.",
    StopReason.SHUTDOWN: "The server is stopping. Send the request again.",
    StopReason.LOST: "The server lost its lease on this response. Send the request again.",
    StopReason.NOT_LOADED: "The model can't be loaded at the moment. Try again later, or ask for another model.",
    StopReason.TOO_LARGE: (
        "The response has an event with more bytes than this server keeps (RESPONSES_EVENTS_MAX_BYTES)."
    ),
}


class Interrupted(Exception):
    """The result of the preparation is no longer needed."""


Check = Callable[[], None]
"""Called between the steps of long work. Raises :class:`Interrupted` when its result is no longer needed."""


def unchecked() -> None:
    """The check of work that is never interrupted."""
