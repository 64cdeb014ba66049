"""Where each piece of a translated request came from, so that errors name the chat's own parameters. Pure.

The translation records a place for every piece that it makes. Errors of the pipeline name places of a Responses
request, in `param` and in backticks within the message; both are translated back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from responses_api.errors import ApiError

Value = TypeVar("Value")

QUOTED: Final = re.compile(r"`([^`]+)`")
WORDS: Final[Mapping[str, str]] = {
    "'input_text'": "'text'",
    "'input_image'": "'image_url'",
    "'output_text'": "'text'",
}
"""Types of content parts, as messages name them."""
PARTS: Final = re.compile("|".join(WORDS))


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the chat's request; ``fields`` are names within the translated piece, and the names here.

    A field that is missing has the same name; an empty name stands for the place itself.
    """

    path: str
    fields: Mapping[str, str] = field(default_factory=dict)

    def inside(self, rest: str) -> str:
        """The place of ``rest``: a path within the translated piece, with the dot or bracket before it, or nothing."""
        match = _longest(self.fields, rest.removeprefix("."))
        if match is None:
            return self.path + rest
        name, after = match
        return self.path + (f".{name}" if name else "") + after


@dataclass(frozen=True, slots=True)
class Places:
    """The places by the translated piece: of parameters, and of the items of the input, which may be many."""

    parameters: Mapping[str, Place]
    items: dict[str, Place] = field(default_factory=dict)

    def of_parameters(self) -> Places:
        """Without the items: after the admission, no error names one."""
        return Places(self.parameters)

    def find(self, param: str) -> str:
        """The place in the chat's request for a place in the Responses request."""
        match = _longest(self.items, param) or _longest(self.parameters, param)
        if match is None:
            return param
        place, rest = match
        return place.inside(rest)

    def reword(self, message: str) -> str:
        """The message with the places in backticks, and the types of parts, as a chat names them."""
        named = QUOTED.sub(lambda quoted: f"`{self.find(quoted[1])}`", message)
        return PARTS.sub(lambda word: WORDS[word[0]], named)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors that leave the block name places in the chat's request."""
        try:
            yield
        except ApiError as error:
            error.message = self.reword(error.message)
            error.args = (error.message,)
            error.param = None if error.param is None else self.find(error.param)
            raise


def _longest(table: Mapping[str, Value], path: str) -> tuple[Value, str] | None:
    """The entry for the longest beginning of a path, and the rest of the path."""
    end = len(path)
    while end > 0:
        if (value := table.get(path[:end])) is not None:
            return value, path[end:]
        end = max(path.rfind(".", 0, end), path.rfind("[", 0, end))
    return None
