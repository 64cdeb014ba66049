"""The messages that processes send each other, one type for each.

A message is a frozen value. :meth:`to_wire` gives what a channel layer carries, :func:`from_wire` the message again;
fields that a newer version has added are ignored. In all of them ``row`` is a primary key and ``response`` a public id.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from .relayed_errors import RelayedError
from .sizes import size_of

Wire = dict[str, Any]
EncodedEvent = tuple[str, str]
"""An event's type and its JSON text."""


class NotUnderstood(Exception):
    """A message of another version. Its text names the type and the fields, and no content."""


class Signal(Enum):
    """A signal from a process to its own listeners, in order with the messages; never sent."""

    LOST = auto()
    """No more messages will come."""
    LOCKED_OUT = auto()
    """The key of the request has ended."""
    LOOK = auto()
    """Look at the database again."""


class _Sendable:
    __slots__ = ()

    def to_wire(self) -> Wire:
        """The message as a channel layer carries it."""
        wire: Wire = _messages.dump_python(self)  # type: ignore[arg-type]  # every subclass is one of them
        return wire

    @property
    def size(self) -> int:
        """The characters of its texts, for buffers that are bounded in bytes; of its events' alone, if it has any."""
        return size_of(self)


# To the readers of a response


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseEvents(_Sendable):
    """The next events of a foreground response."""

    attempt: int
    worker: str
    """The worker to ask for missing events."""
    first: int
    """The sequence number of the first of the events."""
    events: tuple[EncodedEvent, ...]
    last: bool = False
    """Whether the stream ends with them."""
    reason: str = ""
    """Why the response failed, for the log."""
    type: Literal["response.events"] = "response.events"

    @property
    def size(self) -> int:
        return sum(len(text) for _, text in self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseResult(_Sendable):
    """The end of a foreground response, for a reader of the whole object."""

    attempt: int
    worker: str
    event: EncodedEvent
    """The last event of the stream, which has the object."""
    error: RelayedError | None = None
    """Raised instead of returning the object."""
    reason: str = ""
    """Why the response failed, for the log."""
    type: Literal["response.result"] = "response.result"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRefused(_Sendable):
    """The request can't be run; no event has been published."""

    attempt: int
    error: RelayedError
    type: Literal["response.refused"] = "response.refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseWaits(_Sendable):
    """A foreground response whose stream is open can't begin yet."""

    attempt: int
    what_for: str
    """A part of a sentence."""
    type: Literal["response.waits"] = "response.waits"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderBehind(_Sendable):
    """The worker no longer has the events that a reader has asked for."""

    attempt: int
    type: Literal["response.behind"] = "response.behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvents(_Sendable):
    """The next events of a background job, which are in its log already."""

    first: int
    """The sequence number of the first of the events."""
    events: tuple[EncodedEvent, ...]
    last: bool = False
    """Whether the stream ends with them."""
    type: Literal["job.events"] = "job.events"

    @property
    def size(self) -> int:
        return sum(len(text) for _, text in self.events)


ReaderMessage = ResponseEvents | ResponseResult | ResponseRefused | ResponseWaits | ReaderBehind
"""A message to the only reader of a foreground response."""


# To a web process


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle(_Sendable):
    """Messages to readers in one process, each with its group."""

    messages: tuple[tuple[str, Annotated[ReaderMessage, Field(discriminator="type")]], ...]
    type: Literal["web.bundle"] = "web.bundle"

    @property
    def size(self) -> int:
        return sum(message.size for _, message in self.messages)


# To a worker


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRow(_Sendable):
    """Stop the response with this primary key."""

    row: int
    type: Literal["worker.cancel"] = "worker.cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResendEvents(_Sendable):
    """Publish a foreground response's events again, from this sequence number on."""

    response: str
    first: int
    type: Literal["worker.resend"] = "worker.resend"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTokens(_Sendable):
    """Count the input tokens of a request; the answer goes to the group ``reply``."""

    reply: str
    model: str
    payload: str
    """The request, as JSON."""
    parent: int | None
    """The primary key of the turn that it continues."""
    scope: str
    type: Literal["worker.count"] = "worker.count"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCounting(_Sendable):
    """Nobody waits for the count that was to go to ``reply``."""

    reply: str
    type: Literal["worker.stop_counting"] = "worker.stop_counting"


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberThoughts(_Sendable):
    """A model's thinking in another worker, to be remembered here, too."""

    scope: str
    thoughts: tuple[tuple[str, str], ...]
    """For each answer: the digest of the history up to it, in hexadecimal, and the thinking before it."""
    type: Literal["worker.remember"] = "worker.remember"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetScopes(_Sendable):
    """Drop everything in memory that belongs to these cache scopes."""

    scopes: tuple[str, ...]
    type: Literal["worker.forget"] = "worker.forget"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetResponses(_Sendable):
    """Drop the prompts that only these deleted responses have cached."""

    responses: tuple[str, ...]
    type: Literal["worker.forget_responses"] = "worker.forget_responses"


# To the process that asked for a count


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensCounted(_Sendable):
    """The answer to :class:`CountTokens`."""

    tokens: int
    type: Literal["count.done"] = "count.done"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRefused(_Sendable):
    """The error instead of an answer to :class:`CountTokens`."""

    error: RelayedError
    type: Literal["count.refused"] = "count.refused"


Message = (
    ResponseEvents
    | ResponseResult
    | ResponseRefused
    | ResponseWaits
    | ReaderBehind
    | JobEvents
    | Bundle
    | CancelRow
    | ResendEvents
    | CountTokens
    | StopCounting
    | RememberThoughts
    | ForgetScopes
    | ForgetResponses
    | TokensCounted
    | CountRefused
)

_messages: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])


def from_wire(wire: Wire) -> Message:
    """The message that a channel layer has carried. Raises :class:`NotUnderstood` for one of another version."""
    try:
        return _messages.validate_python(wire)
    except ValidationError as error:
        fields = {".".join(map(str, detail["loc"][1:])) for detail in error.errors(include_input=False)}
        raise NotUnderstood(f"{wire.get('type')!r}: {', '.join(sorted(filter(None, fields))) or 'type'}") from None
