"""The query strings of the id routes."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, model_validator

from responses_api.errors import UnknownParameter
from responses_api.protocol.items.base import ClientId
from responses_api.protocol.json.values import describe, format_path
from responses_api.protocol.requests.parameters import Include
from responses_api.protocol.validation.base import WireModel, refusal
from responses_api.protocol.validation.markers import Allows
from responses_api.protocol.validation.parsing import Pairs, parse_arguments

MAX_LIMIT = 100
MAX_CURSOR_DIGITS = 15


def _check_limit(value: object) -> object:
    text = str(value)
    if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_LIMIT)) and 1 <= int(text) <= MAX_LIMIT:
        return int(text)
    raise refusal("invalid_value", f"must be an integer from 1 to {MAX_LIMIT}, but it is {describe(value)}")


def _check_cursor(value: object) -> object:
    text = str(value)
    if text.isascii() and text.isdigit() and len(text) <= MAX_CURSOR_DIGITS:
        return int(text)
    raise refusal("invalid_value", f"must be the `sequence_number` of an event, but it is {describe(value)}")


def _check_flag(value: object) -> object:
    flags = {"true": True, "false": False, "1": True, "0": False}
    if not isinstance(value, str) or value not in flags:
        raise refusal("invalid_value", f"must be true or false, but it is {describe(value)}")
    return flags[value]


Flag = Annotated[bool, BeforeValidator(_check_flag)]


class ListQuery(WireModel):
    """The page of a list; by default, the newest come first."""

    order: Literal["asc", "desc"] = "desc"
    limit: Annotated[int, BeforeValidator(_check_limit), Allows(minimum=1, maximum=MAX_LIMIT)] = 20
    after: ClientId | None = None
    include: Include = ()


class RetrieveQuery(WireModel):
    include: Include = ()
    include_obfuscation: Flag = False
    starting_after: (
        Annotated[int, BeforeValidator(_check_cursor), Allows(minimum=0, maximum=10**MAX_CURSOR_DIGITS - 1)] | None
    ) = None
    stream: Flag = False

    @model_validator(mode="after")
    def _has_stream(self) -> Self:
        if self.starting_after is not None and not self.stream:
            reason = "says where a stream resumes; send `stream=true` with it, or leave it out"
            raise refusal("invalid_value", reason, field="starting_after")
        return self


class ItemQuery(WireModel):
    """The arguments of routes that answer with items but without pages."""

    include: Include = ()


def parse_list_query(pairs: Pairs) -> ListQuery:
    """Raises an ApiError (400) that names the argument."""
    return parse_arguments(ListQuery, pairs)


def parse_retrieve_query(pairs: Pairs) -> RetrieveQuery:
    """Raises an ApiError (400) that names the argument."""
    return parse_arguments(RetrieveQuery, pairs)


def parse_item_query(pairs: Pairs) -> ItemQuery:
    """Raises an ApiError (400) that names the argument."""
    return parse_arguments(ItemQuery, pairs)


def refuse_query(pairs: Pairs) -> None:
    """For routes without options: raises UnknownParameter for the first argument."""
    for name, _ in pairs:
        param = format_path((name,))
        raise UnknownParameter(f"`{param}` is not a known parameter; this route takes none.", param=param)
