"""Lists and the model catalogue in wire form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def list_envelope(data: Sequence[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    """One page, in the order asked for. The ids of an empty page are null."""
    return {
        "object": "list",
        "data": list(data),
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }
