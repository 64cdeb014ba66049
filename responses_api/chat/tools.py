"""`tools` and `tool_choice` of a chat, with their forms for `POST /responses`: flat, where a chat nests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Never

from pydantic import Discriminator, Field, Tag

from responses_api.protocol.json.values import describe
from responses_api.protocol.tools.choice import WORDS, Word
from responses_api.protocol.tools.client import CALLABLE_TYPES, FORMATS, Parameters
from responses_api.protocol.tools.declared import MAX_TOOLS
from responses_api.protocol.validation.base import (
    OTHER,
    TAG_PREFIX,
    WireModel,
    closest,
    refusal,
    refuse_type,
    tag_of_type,
)
from responses_api.protocol.validation.markers import AtMost, Refused
from responses_api.protocol.validation.names import Name

Json = dict[str, Any]
Fields = Mapping[str, str]
"""Names within a piece of the Responses API, and the names here."""

CHOICES: Final = (*CALLABLE_TYPES, "allowed_tools")


def _refuse_format(value: object) -> Never:
    refuse_type(value, FORMATS)


def _refuse_tool(value: object) -> Never:
    refuse_type(value, CALLABLE_TYPES)


def _refuse_choice(value: object) -> Never:
    if isinstance(value, dict):
        refuse_type(value, CHOICES)
    known = ", ".join(f"'{word}'" for word in WORDS)
    reason = f"must be one of {known}, or an object, but it is {describe(value)}{closest(value, WORDS)}"
    raise refusal("invalid_value", reason)


class ChatFunction(WireModel):
    """A function that the client runs. `strict` adds OpenAI's rules for the schema."""

    moved_fields: ClassVar[Mapping[str, str]] = {"input_schema": "parameters", "schema": "parameters"}

    name: Name
    description: str | None = None
    parameters: Parameters | None = None
    strict: bool = False


class ChatFunctionTool(WireModel):
    """A function, as `tools` declares it."""

    fields: ClassVar[Fields] = {name: f"function.{name}" for name in ("name", "description", "parameters", "strict")}
    moved_fields: ClassVar[Mapping[str, str]] = {name: f"function.{name}" for name in ("name", "parameters", "strict")}

    type: Literal["function"]
    function: ChatFunction

    def wire(self) -> Json:
        tool: Json = {"type": "function", "name": self.function.name, "strict": self.function.strict}
        options = {"description": self.function.description, "parameters": self.function.parameters}
        return tool | {name: value for name, value in options.items() if value is not None}


class ChatPlainInput(WireModel):
    """Any text."""

    type: Literal["text"]

    def wire(self) -> Json:
        return {"type": "text"}


class ChatGrammar(WireModel):
    """A grammar in Lark's syntax, or a regular expression."""

    definition: str
    syntax: Literal["lark", "regex"]


class ChatGrammarInput(WireModel):
    """Text that matches a grammar."""

    type: Literal["grammar"]
    grammar: ChatGrammar

    def wire(self) -> Json:
        return {"type": "grammar", "syntax": self.grammar.syntax, "definition": self.grammar.definition}


CustomFormat = Annotated[
    Annotated[ChatPlainInput, Tag(TAG_PREFIX + "text")]
    | Annotated[ChatGrammarInput, Tag(TAG_PREFIX + "grammar")]
    | Annotated[Never, Refused(_refuse_format), Tag(OTHER)],
    Discriminator(tag_of_type(*FORMATS)),
]


class ChatCustom(WireModel):
    """A tool that takes text."""

    name: Name
    description: str | None = None
    format: CustomFormat | None = None


class ChatCustomTool(WireModel):
    """A custom tool, as `tools` declares it."""

    fields: ClassVar[Fields] = {
        "name": "custom.name",
        "description": "custom.description",
        "format": "custom.format",
        "format.definition": "custom.format.grammar.definition",
        "format.syntax": "custom.format.grammar.syntax",
    }

    type: Literal["custom"]
    custom: ChatCustom

    def wire(self) -> Json:
        tool: Json = {"type": "custom", "name": self.custom.name}
        if self.custom.description is not None:
            tool["description"] = self.custom.description
        return tool if self.custom.format is None else {**tool, "format": self.custom.format.wire()}


ChatTool = Annotated[
    Annotated[ChatFunctionTool, Tag(TAG_PREFIX + "function")]
    | Annotated[ChatCustomTool, Tag(TAG_PREFIX + "custom")]
    | Annotated[Never, Refused(_refuse_tool), Tag(OTHER)],
    Discriminator(tag_of_type(*CALLABLE_TYPES)),
]
ChatTools = Annotated[tuple[ChatTool, ...], Field(strict=False, fail_fast=True), AtMost(MAX_TOOLS)]


class ChatChosenName(WireModel):
    """The name of a declared tool."""

    name: str


class ChatChosenFunction(WireModel):
    """A declared function."""

    fields: ClassVar[Fields] = {"name": "function.name"}

    type: Literal["function"]
    function: ChatChosenName

    def wire(self) -> Json:
        return {"type": "function", "name": self.function.name}

    def places(self) -> Fields:
        return self.fields


class ChatChosenCustom(WireModel):
    """A declared custom tool."""

    fields: ClassVar[Fields] = {"name": "custom.name"}

    type: Literal["custom"]
    custom: ChatChosenName

    def wire(self) -> Json:
        return {"type": "custom", "name": self.custom.name}

    def places(self) -> Fields:
        return self.fields


ChatChosenTool = Annotated[
    Annotated[ChatChosenFunction, Tag(TAG_PREFIX + "function")]
    | Annotated[ChatChosenCustom, Tag(TAG_PREFIX + "custom")]
    | Annotated[Never, Refused(_refuse_tool), Tag(OTHER)],
    Discriminator(tag_of_type(*CALLABLE_TYPES)),
]


class ChatAllowedTools(WireModel):
    """The tools that the model may call, of those that it is shown."""

    mode: Literal["auto", "required"]
    tools: Annotated[tuple[ChatChosenTool, ...], Field(strict=False, fail_fast=True), AtMost(MAX_TOOLS)]


class ChatAllowedChoice(WireModel):
    """The model is shown all tools but may call only these."""

    type: Literal["allowed_tools"]
    allowed_tools: ChatAllowedTools

    def wire(self) -> Json:
        tools = [tool.wire() for tool in self.allowed_tools.tools]
        return {"type": "allowed_tools", "mode": self.allowed_tools.mode, "tools": tools}

    def places(self) -> Fields:
        """The names within the choice: those of each tool, too."""
        places = {"mode": "allowed_tools.mode", "tools": "allowed_tools.tools"}
        for index, tool in enumerate(self.allowed_tools.tools):
            places |= {
                f"tools[{index}].{name}": f"allowed_tools.tools[{index}].{here}" for name, here in tool.fields.items()
            }
        return places


def _tag_of_choice(value: Any) -> str:
    return TAG_PREFIX + "word" if isinstance(value, str) and value in WORDS else tag_of_type(*CHOICES)(value)


ChatToolChoice = Annotated[
    Annotated[Word, Tag(TAG_PREFIX + "word")]
    | Annotated[ChatChosenFunction, Tag(TAG_PREFIX + "function")]
    | Annotated[ChatChosenCustom, Tag(TAG_PREFIX + "custom")]
    | Annotated[ChatAllowedChoice, Tag(TAG_PREFIX + "allowed_tools")]
    | Annotated[Never, Refused(_refuse_choice), Tag(OTHER)],
    Discriminator(_tag_of_choice),
]
