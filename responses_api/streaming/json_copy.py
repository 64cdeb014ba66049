"""Copies of JSON values, so that events stay values of their own."""

from __future__ import annotations

from typing import Any

import orjson


def json_copy(value: Any) -> Any:
    """A copy of a JSON value; ten times as fast as `deepcopy`, and it stands on the way to every first event."""
    return orjson.loads(orjson.dumps(value))
