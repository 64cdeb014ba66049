"""The pieces of an answer that a dialect's parser returns. Plain values."""

from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Literal

Phase = Literal["commentary", "final_answer"]
Span = tuple[int, int]
"""The place of a piece in the model's text, in characters: start, and end (exclusive)."""


@dataclass(frozen=True, slots=True)
class Text:
    """More of the message to the user. Texts with different phases are different messages."""

    text: str
    phase: Phase | None = None
    spans: tuple[Span, ...] = field(default=(), compare=False)
    """The places that the text consists of, in order; there may be markup between them."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """More of the model's thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class CallOpened:
    """A call of a declared tool begins; the pieces up to its CallClosed belong to it. One call is open at a time."""

    name: str
    namespace: str | None = None
    custom: bool = False
    """The call has raw input (CallInput) and not JSON arguments (CallArguments)."""


@dataclass(frozen=True, slots=True)
class CallArguments:
    """More of the open call's arguments: the fragments of a complete call join to the text of one JSON object."""

    text: str


@dataclass(frozen=True, slots=True)
class CallInput:
    """More of the open custom call's raw input."""

    text: str


@dataclass(frozen=True, slots=True)
class CallClosed:
    """The open call ends. `complete` is false for one that was cut off, or whose arguments turned out malformed."""

    complete: bool = True


Piece = Text | Reasoning | CallOpened | CallArguments | CallInput | CallClosed


def merged(pieces: list[Piece]) -> list[Piece]:
    """The pieces with neighbouring fragments of one kind joined."""
    if len(pieces) < 2:
        return pieces
    out: list[Piece] = []
    for _, group in groupby(pieces, key=_kind):
        run = list(group)
        match run[0]:
            case (Text() | Reasoning() | CallArguments() | CallInput()) as first if len(run) > 1:
                text = "".join(piece.text for piece in run if not isinstance(piece, CallOpened | CallClosed))
                joined: Piece = replace(first, text=text)
                if isinstance(joined, Text):
                    joined = replace(joined, spans=tuple(span for text in run for span in getattr(text, "spans", ())))
                out.append(joined)
            case _:
                out += run
    return out


def _kind(piece: Piece) -> tuple[type, Phase | None]:
    return type(piece), piece.phase if isinstance(piece, Text) else None
