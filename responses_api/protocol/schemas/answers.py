"""Validates a whole structured answer: the final check of what the decoder should have enforced.

Limited in the answer's values and levels, and in time. Nothing is fetched. Patterns are not run again: Python's would
backtrack, and the decoder has already enforced them in linear time.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from responses_api.protocol.schemas.decoder import without_patterns

_MOST_DIGITS = 4000  # beyond, Python refuses to read an integer


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationLimits:
    """Limits on an answer's values and levels, and on the time for validating it."""

    max_nodes: int
    max_depth: int
    seconds: float


def answer_error(text: str, schema: dict[str, Any], *, limits: ValidationLimits) -> str:
    """Why the text is not JSON that satisfies the schema, without quoting it, for the log; empty when it is."""
    _validator_class()  # imports before the clock starts
    # In this thread's CPU time: a valid answer must not fail because the machine is busy.
    deadline = time.thread_time() + limits.seconds
    try:
        value = json.loads(text, parse_int=_integer)
        _check_size(value, limits)
        return _violation(value, schema, deadline)
    except _Exceeded as exceeded:
        return str(exceeded)
    except ValueError as error:
        return f"it is not valid JSON: {error}"
    except RecursionError:
        return "it is nested too deep"


class _Exceeded(Exception):
    pass


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _MOST_DIGITS else int(Decimal(digits))


def _check_size(value: Any, limits: ValidationLimits) -> None:
    count, waiting = 0, [(value, 1)]
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if count > limits.max_nodes:
            raise _Exceeded(f"it has more than {limits.max_nodes} values")
        if depth > limits.max_depth:
            raise _Exceeded(f"it is nested deeper than {limits.max_depth} levels")
        if isinstance(node, dict | list):
            waiting += [(child, depth + 1) for child in (node.values() if isinstance(node, dict) else node)]


def _violation(value: Any, schema: dict[str, Any], deadline: float) -> str:
    import referencing

    token = _deadline.set(deadline)
    try:
        validator = _validator_class()(without_patterns(schema), registry=referencing.Registry())
        error = next(validator.iter_errors(value), None)
    except _Exceeded:
        raise
    except referencing.exceptions.Unresolvable:
        return "a reference can't be resolved"
    finally:
        _deadline.reset(token)
    return "" if error is None else f"it violates `{error.validator}`"


_deadline: ContextVar[float] = ContextVar("deadline")


@cache
def _validator_class() -> Any:
    """jsonschema's validator, with a deadline and exact decimals. Imported on first use."""
    import jsonschema

    draft = jsonschema.Draft202012Validator
    keywords = {name: _timed(function) for name, function in draft.VALIDATORS.items()}
    return jsonschema.validators.extend(draft, {**keywords, "multipleOf": _multiple_of})


def _timed(function: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        if time.thread_time() > _deadline.get():
            raise _Exceeded("its validation took too long")
        return function(*arguments)

    return timed


def _exact(number: float) -> Fraction:
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def _multiple_of(validator: Any, divisor: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """0.07 is a multiple of 0.01, which binary fractions deny."""
    import jsonschema

    if not validator.is_type(instance, "number"):
        return
    # Fractions, since decimals divide only as many digits as their context has.
    if (isinstance(instance, float) and not math.isfinite(instance)) or _exact(instance) % _exact(divisor):
        yield jsonschema.ValidationError(f"{instance} is not a multiple of {divisor}")
