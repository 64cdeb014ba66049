"""How much a model is to think, as its template takes it and as a share of the answer. Pure."""

from typing import Any, Literal

from inference.dialects.detection import Dialect

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

_SHARES: dict[Effort, float] = {
    "none": 0, "minimal": 1 / 16, "low": 1 / 8, "medium": 1 / 4, "high": 1 / 2, "xhigh": 3 / 4, "max": 7 / 8,
}  # fmt: skip
_UNASKED = 3 / 4
"""What a model that was not told how much to think is left, so that an answer fits behind it."""
_LEVELS: dict[Effort, str] = {
    "none": "low", "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high",
}  # fmt: skip
"""Templates know three levels, and those that take one can't turn thinking off by it."""


def thinking_budget(effort: Effort | None, limit: int) -> int:
    """How many of an answer's `limit` tokens may be thinking."""
    return int(limit * (_UNASKED if effort is None else _SHARES[effort]))


def thinking_arguments(effort: Effort | None, dialect: Dialect) -> dict[str, Any]:
    """The template's switches for this effort; none where nothing was asked for, or where it has no switch."""
    if effort is None:
        return {}
    values: dict[str, Any] = {
        "enable_thinking": effort != "none",
        "thinking": effort != "none",
        "reasoning_effort": _LEVELS[effort],
    }
    return {name: value for name, value in values.items() if name in dialect.switches}
