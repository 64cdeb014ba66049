"""The query strings of the id routes. Arguments are pairs, as `urllib.parse.parse_qsl` gives them.

An array comes as `include=a&include=b` or, from OpenAI's SDKs, as `include[]=a`. The last of a repeated value counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BeforeValidator, ValidationError, model_validator

from responses_api.errors import UnknownParameter
from responses_api.protocol.base import WireModel, describe, fault
from responses_api.protocol.faults import api_error
from responses_api.protocol.items import ClientId
from responses_api.protocol.parameters import Include
from responses_api.protocol.wire_values import check_wire_value, format_path

Pairs = Iterable[tuple[str, str]]
Query = TypeVar("Query", bound=WireModel)

MAX_LIMIT = 100
MAX_CURSOR_DIGITS = 15


def _check_limit(value: object) -> object:
    text = str(value)
    if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_LIMIT)) and 1 <= int(text) <= MAX_LIMIT:
        return int(text)
    raise fault("invalid_value", f"must be an integer from 1 to {MAX_LIMIT}, but it is {describe(value)}")


def _check_cursor(value: object) -> object:
    text = str(value)
    if text.isascii() and text.isdigit() and len(text) <= MAX_CURSOR_DIGITS:
        return int(text)
    raise fault("invalid_value", f"must be the `sequence_number` of an event, but it is {describe(value)}")


def _check_flag(value: object) -> object:
    flags = {"true": True, "false": False, "1": True, "0": False}
    if not isinstance(value, str) or value not in flags:
        raise fault("invalid_value", f"must be true or false, but it is {describe(value)}")
    return flags[value]


Flag = Annotated[bool, BeforeValidator(_check_flag)]


class ListQuery(WireModel):
    """Which page of a list: newest first unless asked otherwise."""

    order: Literal["asc", "desc"] = "desc"
    limit: Annotated[int, BeforeValidator(_check_limit)] = 20
    after: ClientId | None = None
    include: Include = ()


class RetrieveQuery(WireModel):
    include: Include = ()
    include_obfuscation: Flag = False
    starting_after: Annotated[int, BeforeValidator(_check_cursor)] | None = None
    stream: Flag = False

    @model_validator(mode="after")
    def _has_stream(self) -> Self:
        if self.starting_after is not None and not self.stream:
            reason = "says where a stream goes on; send `stream=true` with it, or leave it out"
            raise fault("invalid_value", reason, field="starting_after")
        return self


def parse_list_query(pairs: Pairs) -> ListQuery:
    """Raises an ApiError (400) that names the argument."""
    return _parse(ListQuery, pairs)


def parse_retrieve_query(pairs: Pairs) -> RetrieveQuery:
    """Raises an ApiError (400) that names the argument."""
    return _parse(RetrieveQuery, pairs)


def refuse_query(pairs: Pairs) -> None:
    """For routes without options: raises UnknownParameter for the first argument."""
    for name, _ in pairs:
        param = format_path((name,))
        raise UnknownParameter(f"`{param}` is not a known parameter; this route takes none.", param=param)


def _parse(model: type[Query], pairs: Pairs) -> Query:
    arguments: dict[str, object] = {}
    for name, value in pairs:
        if name in ("include", "include[]"):
            included = arguments.setdefault("include", [])
            assert isinstance(included, list)
            included.append(value)
        else:
            arguments[name] = value
    check_wire_value(arguments)
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        raise api_error(error) from None
