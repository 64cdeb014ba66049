"""Server-sent events. A worker encodes an event once, as its type and its JSON text; readers add the framing.

The `event:` line is the event's type, and `data:` is one line, since JSON escapes line breaks.
"""

from __future__ import annotations

from typing import Final

import orjson

from responses_api.streaming.events import Event

DONE: Final = b"data: [DONE]\n\n"
PING: Final = "ping"
"""The comment that keeps a silent connection alive."""


def encode_event(event: Event) -> tuple[str, str]:
    """The type and the JSON text of an event."""
    return event["type"], orjson.dumps(event).decode()


def comment(text: str) -> bytes:
    """A comment on the wire, which clients pass over; of one line."""
    return f": {text}\n\n".encode()


def frame(type: str, json_text: str) -> bytes:
    """The bytes of an encoded event on the wire. One of an empty type has only data."""
    name = f"event: {type}\n" if type else ""
    return f"{name}data: {json_text}\n\n".encode()


def encode(event: Event) -> bytes:
    """The bytes of an event on the wire."""
    return frame(*encode_event(event))
