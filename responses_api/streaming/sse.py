"""Server-sent events. A worker encodes an event once, as its type and its JSON text; readers only frame.

The `event:` line equals the event's type and `data:` is one line, for JSON escapes line breaks.
"""

from __future__ import annotations

from typing import Final

import orjson

from responses_api.streaming.events import Event

DONE: Final = b"data: [DONE]\n\n"
PING: Final = b": ping\n\n"


def encode_event(event: Event) -> tuple[str, str]:
    """The type and the JSON text of an event."""
    return event["type"], orjson.dumps(event).decode()


def frame(type: str, json_text: str) -> bytes:
    """The bytes that a reader gets for an encoded event."""
    return f"event: {type}\ndata: {json_text}\n\n".encode()


def encode(event: Event) -> bytes:
    """The bytes that a reader gets for an event."""
    return frame(*encode_event(event))
