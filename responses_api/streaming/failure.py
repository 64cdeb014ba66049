"""The end of a stream whose worker is gone, made by the reader from what it has seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_api.streaming.events import Event


def failure_events(created: Mapping[str, Any], *, sequence_number: int, message: str) -> list[Event]:
    """The `error` event and `response.failed`, for the response object of `response.created`.

    `sequence_number` is the first one that the reader has not seen. The output stays empty, as nothing of it is stored.
    """
    fault = {"code": "server_error", "message": message}
    failed = {**created, "status": "failed", "error": fault}
    return [
        {"type": "error", "sequence_number": sequence_number, **fault, "param": None},
        {"type": "response.failed", "sequence_number": sequence_number + 1, "response": failed},
    ]
