"""Parts of transcripts: tools, pieces, and transcripts with the pieces that they stand for."""

import json
from dataclasses import dataclass, field

from inference.calls import Thinking, Tool
from inference.calls.pieces import CallArguments, CallClosed, CallInput, CallOpened, Piece

WEATHER = Tool(
    name="get_weather",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "exact": {"type": ["boolean", "null"]},
            "at": {"$ref": "#/$defs/place"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "free": {},
        },
        "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}}}},
    },
)
NOW = Tool(name="now")
CLOSE = Tool(
    name="close",
    namespace="agents",
    parameters={"type": "object", "properties": {"target": {"type": "string"}}},
)
PATCH = Tool(name="apply_patch", custom=True)
TOOLS = (WEATHER, NOW, CLOSE, PATCH)
THINK = Thinking()
OPENED = Thinking(opened=True)


@dataclass(frozen=True, kw_only=True)
class Transcript:
    dialect: str
    name: str
    text: str
    pieces: list[Piece] = field(default_factory=list)
    thinking: Thinking | None = None
    tools: tuple[Tool, ...] = TOOLS

    def __str__(self) -> str:
        return f"{self.dialect}: {self.name}"


def call(name: str, arguments: object, *, namespace: str | None = None) -> list[Piece]:
    """A complete call; arguments as values, or as the text they come out as."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return [CallOpened(name, namespace), CallArguments(text), CallClosed()]


def cut(name: str, arguments: str) -> list[Piece]:
    return [CallOpened(name), *([CallArguments(arguments)] if arguments else []), CallClosed(complete=False)]


def patch(text: str) -> list[Piece]:
    return [CallOpened("apply_patch", None, custom=True), CallInput(text), CallClosed()]


PARIS = {"city": "Paris"}
MARKUP = {"city": 'He said "</tool_call>" <think>{[TOOL_CALLS]} \\ and\nleft'}
NESTED = {"at": {"lat": 48.85, "more": [1, {"a": [[]]}, None, True]}, "tags": ["a", "b c"], "days": 3}
UNICODE = {"city": "Zürich 東京 🗼"}
RAW = '*** Begin\n+say "hi" \\ 🗼\n*** End'


def dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def case(dialect: str, name: str, text: str, *pieces: Piece, **more: object) -> Transcript:
    return Transcript(dialect=dialect, name=name, text=text, pieces=list(pieces), **more)  # type: ignore[arg-type]
