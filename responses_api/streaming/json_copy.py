"""Copies of JSON values, so that later changes don't reach events."""

from __future__ import annotations

from typing import Any

import orjson


def json_copy(value: Any) -> Any:
    """A copy of a JSON value. Ten times as fast as `deepcopy`: every first event waits for one."""
    return orjson.loads(orjson.dumps(value))
