"""Names of formats and tools."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from responses_api.protocol.json.values import describe
from responses_api.protocol.validation.base import refusal
from responses_api.protocol.validation.markers import Allows

NAME = "[A-Za-z0-9_-]{1,64}"


def _check_name(value: str) -> str:
    if not re.fullmatch(NAME, value):
        reason = f"must be 1 to 64 letters, digits, underscores and hyphens, but it is {describe(value)}"
        raise refusal("invalid_value", reason)
    return value


Name = Annotated[str, AfterValidator(_check_name), Allows(pattern=f"^{NAME}$")]
