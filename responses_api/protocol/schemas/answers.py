"""The last look at a structured answer: whether its whole text satisfies the schema, as the decoder should have seen.

Bounded: by the answer's values and levels, and by time. Nothing is fetched. Patterns are not run again, since Python's
would backtrack: the decoder's, which run in linear time, have constrained the text.
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
    """How large an answer may be, in values and levels, and how long the look at it may take."""

    max_nodes: int
    max_depth: int
    seconds: float


def answer_flaw(text: str, schema: dict[str, Any], *, limits: ValidationLimits) -> str:
    """Why the text is not JSON that satisfies the schema, without quoting it: for the log; empty when it does."""
    _validator_class()  # its import is not the answer's fault
    # Of this thread's own time: on a machine that is busy with others, a good answer must not fail.
    deadline = time.thread_time() + limits.seconds
    try:
        value = json.loads(text, parse_int=_integer)
        _check_size(value, limits)
        return _violation(value, schema, deadline)
    except _Exceeded as exceeded:
        return str(exceeded)
    except ValueError as error:
        return f"it is no JSON: {error}"
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
    """jsonschema's, with an eye on the clock and exact decimals. Only who validates pays for the import."""
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
    # Not decimals: they divide no more digits than their context has.
    if (isinstance(instance, float) and not math.isfinite(instance)) or _exact(instance) % _exact(divisor):
        yield jsonschema.ValidationError(f"{instance} is not a multiple of {divisor}")
