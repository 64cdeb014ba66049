"""Types of fields that several objects have."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

Count = Annotated[int, Field(ge=0)]
Timestamp = Annotated[int, Field(description="Seconds since 1970.")]
Metadata = dict[str, str]
AnyObject = dict[str, Any]
