"""Why a response ends before its answer does, in the sentences that clients are told; and how it ends while it is
prepared.
"""

from collections.abc import Callable

FAULT = "The server failed to generate this response. Send the request again."
INTERRUPTED = {
    "timeout": "The response took longer than this server allows. Ask for a shorter one, or try again later.",
    "shutdown": "The server is stopping. Send the request again.",
    "lost": "The server lost its hold on this response. Send the request again.",
    "too_large": "The response has an event with more bytes than this server keeps (RESPONSES_EVENTS_MAX_BYTES).",
}


class Interrupted(Exception):
    """Nobody waits any longer for what is being prepared."""


Check = Callable[[], None]
"""Called between the steps of what takes long. Raises :class:`Interrupted` when nobody waits for it any longer."""


def unchecked() -> None:
    """Of what goes on in any case."""
