"""The base of all request models, and the refusals that validators raise.

Models are frozen and strict: nothing is coerced, a boolean is not an integer. A null field counts as absent. An unknown
field is the first thing that is reported, with the name that was probably meant, since a typo usually makes another
field look missing.

Unions are tagged: a discriminator picks one branch by looking at the value, so one mistake gives one error. Tags start
with NUL, which no checked body contains, so that they can be told from field names in a path. A value that matches no
branch goes to a branch that only refuses.

An admitted request is read from its row by the same models. This restores types only: the rules on whole objects were
applied at admission, and are not applied again (`is_admitted`).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Never

from pydantic import BaseModel, ConfigDict, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from responses_api.protocol.json.values import describe, shorten

RefusalKind = Literal["invalid_value", "missing_required_parameter", "unknown_parameter", "unsupported_parameter"]

TAG_PREFIX = "\0"
OTHER = TAG_PREFIX + "other"

ADMITTED: Final = "admitted"
"""Pydantic's validation context for a request that has passed admission."""


def is_admitted(info: ValidationInfo) -> bool:
    """Whether the request has passed admission, so that only its types are to be restored."""
    return info.context is ADMITTED


def refusal(kind: RefusalKind, reason: str, *, field: str | None = None) -> PydanticCustomError:
    """A refusal to raise in a validator.

    `reason` continues a sentence whose subject is the place ("must be …"). `field` names a place inside the value.
    """
    return PydanticCustomError(kind, "{reason}", {"reason": reason, "field": field})


def entries(right: str, is_right: Callable[[object], bool]) -> Callable[[object], object]:
    """A validator that runs before pydantic's: the first wrong entry of an object is the only error."""

    def check(value: object) -> object:
        if isinstance(value, dict):
            for name, entry in value.items():
                if not is_right(entry):
                    raise refusal("invalid_value", f"must be {right}, but it is {describe(entry)}", field=shorten(name))
        return value

    return check


class WireModel(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", protected_namespaces=())

    moved_fields: ClassVar[Mapping[str, str]] = {}  # other APIs' names → the name here

    @model_validator(mode="before")
    @classmethod
    def _present_fields(cls, data: object, info: ValidationInfo) -> object:
        if not isinstance(data, dict):
            return data
        if not is_admitted(info):
            cls._refuse_unknown(data)
        return {name: value for name, value in data.items() if value is not None}

    @classmethod
    def _refuse_unknown(cls, data: dict[str, object]) -> None:
        known = {field.alias or name for name, field in cls.model_fields.items()}
        for name, value in data.items():
            # The SDK's objects dump an unset field under Python's name for a reserved word (`async_`).
            if name not in known and not (value is None and name in cls.model_fields):
                raise _unknown(name, sorted(known), cls.moved_fields)


def _unknown(name: str, known: Iterable[str], moved: Mapping[str, str]) -> PydanticCustomError:
    meant = moved.get(name) or next(iter(difflib.get_close_matches(shorten(name), known, n=1, cutoff=0.7)), None)
    advice = f"did you mean `{meant}`?" if meant else "remove it."
    return refusal("unknown_parameter", f"is not a known parameter; {advice}", field=name)


def closest(name: object, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or nothing when no known name is near."""
    near = difflib.get_close_matches(shorten(name), known, n=1, cutoff=0.7) if isinstance(name, str) else []
    return f" (did you mean '{near[0]}'?)" if near else ""


def tag_of_shape(tags: Mapping[type, str]) -> Callable[[Any], str]:
    """A discriminator by JSON shape, such as `{str: "text", list: "items"}`."""

    def discriminate(value: Any) -> str:
        return TAG_PREFIX + tags[type(value)] if type(value) in tags else OTHER

    return discriminate


def tag_of_type(*known: str) -> Callable[[Any], str]:
    """A discriminator by the field `type` of an object."""

    def discriminate(value: Any) -> str:
        kind = value.get("type") if isinstance(value, dict) else None
        return TAG_PREFIX + kind if isinstance(kind, str) and kind in known else OTHER

    return discriminate


def refuse_type(value: object, kinds: Sequence[str]) -> Never:
    """Refuses a value that matches no branch of a union by `type`."""
    known = ", ".join(f"'{kind}'" for kind in kinds)
    if not isinstance(value, dict):
        raise refusal("invalid_value", f"must be an object, but it is {describe(value)}")
    kind = value.get("type")
    if kind is None:
        raise refusal("missing_required_parameter", f"is missing; send one of {known}", field="type")
    advice = closest(kind, kinds) or f"; known are {known}"
    raise refusal("invalid_value", f"is {describe(kind)}, which is not a known type{advice}", field="type")
