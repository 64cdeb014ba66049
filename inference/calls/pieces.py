"""What a dialect's parser makes of a model's text, piece by piece. Plain values."""

from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Literal

Phase = Literal["commentary", "final_answer"]
Span = tuple[int, int]
"""Where a piece stands in all that the model wrote, in characters: from, and up to but without."""


@dataclass(frozen=True, slots=True)
class Text:
    """More of the message to the user. Texts with different phases are different messages."""

    text: str
    phase: Phase | None = None
    spans: tuple[Span, ...] = field(default=(), compare=False)
    """What it consists of, in order: there may be markup between."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """More of the model's thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class CallOpened:
    """A call of a declared tool begins; what follows up to its CallClosed belongs to it. One call is open at a time."""

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
    """The same with neighbouring fragments of one kind joined."""
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
