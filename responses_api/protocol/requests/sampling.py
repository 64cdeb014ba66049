"""Our sampling parameters, as in OpenAI's API for completions and in other servers of local models."""

from __future__ import annotations

import re
from typing import Annotated, Any, Never

import orjson
from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from inference.types import RESERVED_TEMPLATE_ARGUMENTS
from responses_api.protocol.json.values import MAX_INTEGER, MIN_INTEGER, describe
from responses_api.protocol.validation.base import OTHER, TAG_PREFIX, entries, refusal, tag_of_shape
from responses_api.protocol.validation.markers import Allows, AtMost, Refused

MAX_STOPS = 4
MAX_STOP = 1024  # characters
MAX_BIASES = 1024
MAX_BIAS = 100
MAX_PENALTY = 2
LEAST_REPETITION, MOST_REPETITION = 0.1, 10
MAX_TEMPLATE_ARGUMENTS = 32
MAX_TEMPLATE_BYTES = 16 * 1024

TOKEN_ID = "0|[1-9][0-9]{0,18}"
ARGUMENT = "[A-Za-z_][A-Za-z0-9_]{0,63}"


def _refuse_stop(value: object) -> Never:
    raise refusal("invalid_value", f"must be a string or an array of strings, but it is {describe(value)}")


def _check_biases(value: dict[str, float]) -> dict[str, float]:
    for name in value:
        if not re.fullmatch(TOKEN_ID, name):
            raise refusal(
                "invalid_value", "must be named by a token's id in decimal digits, such as '50256'", field=name
            )
    return value


def _is_bias(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -MAX_BIAS <= value <= MAX_BIAS


def _check_arguments(value: dict[str, Any]) -> dict[str, Any]:
    for name in value:
        if name in RESERVED_TEMPLATE_ARGUMENTS:
            raise refusal("invalid_value", "can't be set, for the server sets it; remove it", field=name)
        if not re.fullmatch(ARGUMENT, name):
            reason = "must have a name of at most 64 letters, digits and underscores, as a template's variables have"
            raise refusal("invalid_value", reason, field=name)
    size = len(orjson.dumps(value))
    if size > MAX_TEMPLATE_BYTES:
        raise refusal("invalid_value", f"must be at most {MAX_TEMPLATE_BYTES} bytes of JSON, but it is {size}")
    return value


_Stop = Annotated[str, Field(min_length=1, max_length=MAX_STOP)]
Stop = Annotated[
    Annotated[_Stop, Tag(TAG_PREFIX + "text")]
    | Annotated[
        tuple[_Stop, ...],
        Field(strict=False, fail_fast=True),
        AtMost(MAX_STOPS),
        Tag(TAG_PREFIX + "list"),
    ]
    | Annotated[Never, Refused(_refuse_stop), Tag(OTHER)],
    Discriminator(tag_of_shape({str: "text", list: "list"})),
]
Seed = Annotated[int, Field(ge=MIN_INTEGER, le=MAX_INTEGER)]
TopK = Annotated[int, Field(ge=0, le=2**31 - 1)]
MinP = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Penalty = Annotated[float, Field(ge=-MAX_PENALTY, le=MAX_PENALTY, allow_inf_nan=False)]
RepetitionPenalty = Annotated[float, Field(ge=LEAST_REPETITION, le=MOST_REPETITION, allow_inf_nan=False)]
LogitBias = Annotated[
    dict[str, Annotated[float, Field(ge=-MAX_BIAS, le=MAX_BIAS, allow_inf_nan=False)]],
    BeforeValidator(entries(f"a number from -{MAX_BIAS} to {MAX_BIAS}", _is_bias)),
    AtMost(MAX_BIASES),
    AfterValidator(_check_biases),
    Allows(propertyNames={"pattern": f"^({TOKEN_ID})$"}),
]
TemplateArguments = Annotated[
    dict[str, Any],
    AtMost(MAX_TEMPLATE_ARGUMENTS),
    AfterValidator(_check_arguments),
    Allows(
        propertyNames={"pattern": f"^{ARGUMENT}$", "not": {"enum": sorted(RESERVED_TEMPLATE_ARGUMENTS)}},
    ),
]
