"""The reasoning effort: the arguments of a model's template, and the share of its answer. Pure."""

from collections.abc import Collection
from typing import Any, Literal

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

_SHARES: dict[Effort, float] = {
    "none": 0, "minimal": 1 / 16, "low": 1 / 8, "medium": 1 / 4, "high": 1 / 2, "xhigh": 3 / 4, "max": 7 / 8,
}  # fmt: skip
_DEFAULT_SHARE = 3 / 4
"""The share without an effort, which leaves room for an answer after the thinking."""
_LEVELS: dict[Effort, str] = {
    "none": "low", "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high",
}  # fmt: skip
"""Templates know three levels, and those that take one can't turn thinking off by it."""


def thinking_budget(effort: Effort | None, limit: int) -> int:
    """How many of an answer's `limit` tokens may be thinking."""
    return int(limit * (_DEFAULT_SHARE if effort is None else _SHARES[effort]))


def thinking_arguments(effort: Effort | None, switches: Collection[str]) -> dict[str, Any]:
    """The values of the template's switches for this effort; none without an effort or without switches."""
    if effort is None:
        return {}
    values: dict[str, Any] = {
        "enable_thinking": effort != "none",
        "thinking": effort != "none",
        "reasoning_effort": _LEVELS[effort],
    }
    return {name: value for name, value in values.items() if name in switches}
