"""The parts of a message's content: `text` and `image_url` from people and tools, `text` and `refusal` from the model.

Each part has its form for `POST /responses`, whose own rules then apply, such as whether the model sees images.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Never

from pydantic import ConfigDict, Discriminator, Field, Tag

from responses_api.protocol.items.content import OtherContent, PromptCacheBreakpoint, Text, content_shape
from responses_api.protocol.validation.base import (
    OTHER,
    TAG_PREFIX,
    WireModel,
    refusal,
    refuse_type,
    tag_of_type,
)
from responses_api.protocol.validation.markers import Refused

Json = dict[str, Any]

SENSES = {"input_audio": "audio", "file": "files"}
"""Types of parts that no model here reads."""


class LenientModel(WireModel):
    """Ignores unknown fields: clients send back what they got, from this server and from others."""

    model_config = ConfigDict(extra="ignore")

    @classmethod
    def _refuse_unknown(cls, data: Json) -> None:
        """There is nothing to refuse."""


class ChatText(WireModel):
    """Text."""

    fields: ClassVar[dict[str, str]] = {}

    type: Literal["text"]
    text: str
    prompt_cache_breakpoint: PromptCacheBreakpoint | None = None

    def wire(self) -> Json:
        return {"type": "input_text", "text": self.text}


class ChatImageUrl(WireModel):
    """An image's address, or its content as a data URL."""

    url: str
    detail: Literal["auto", "low", "high", "original"] | None = None


class ChatImage(WireModel):
    """An image."""

    fields: ClassVar[dict[str, str]] = {"image_url": "image_url.url", "detail": "image_url.detail"}
    """Names within the part of the Responses API, and the names here."""

    type: Literal["image_url"]
    image_url: ChatImageUrl
    prompt_cache_breakpoint: PromptCacheBreakpoint | None = None

    def wire(self) -> Json:
        part = {"type": "input_image", "image_url": self.image_url.url}
        return part if self.image_url.detail is None else {**part, "detail": self.image_url.detail}


class ChatAnswerText(LenientModel):
    """Text that a model answered with."""

    type: Literal["text"]
    text: str

    def wire(self) -> Json:
        return {"type": "output_text", "text": self.text}


class ChatAnswerRefusal(LenientModel):
    """A refusal that a model answered with."""

    type: Literal["refusal"]
    refusal: str

    def wire(self) -> Json:
        return {"type": "refusal", "refusal": self.refusal}


def _refuse_part(value: object, kinds: tuple[str, ...]) -> Never:
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind in SENSES:
        reason = f"has the type '{kind}', but the model can't read {SENSES[kind]}; leave it out"
        raise refusal("unsupported_parameter", reason)
    refuse_type(value, kinds)


def _refuse_text_part(value: object) -> Never:
    _refuse_part(value, ("text",))


def _refuse_input_part(value: object) -> Never:
    _refuse_part(value, ("text", "image_url"))


def _refuse_answer_part(value: object) -> Never:
    _refuse_part(value, ("text", "refusal"))


InstructionPart = Annotated[
    Annotated[ChatText, Tag(TAG_PREFIX + "text")] | Annotated[Never, Refused(_refuse_text_part), Tag(OTHER)],
    Discriminator(tag_of_type("text")),
]
InputPart = Annotated[
    Annotated[ChatText, Tag(TAG_PREFIX + "text")]
    | Annotated[ChatImage, Tag(TAG_PREFIX + "image_url")]
    | Annotated[Never, Refused(_refuse_input_part), Tag(OTHER)],
    Discriminator(tag_of_type("text", "image_url")),
]
AnswerPart = Annotated[
    Annotated[ChatAnswerText, Tag(TAG_PREFIX + "text")]
    | Annotated[ChatAnswerRefusal, Tag(TAG_PREFIX + "refusal")]
    | Annotated[Never, Refused(_refuse_answer_part), Tag(OTHER)],
    Discriminator(tag_of_type("text", "refusal")),
]

_Instructions = Annotated[tuple[InstructionPart, ...], Field(strict=False, fail_fast=True), Tag(TAG_PREFIX + "parts")]
_Inputs = Annotated[tuple[InputPart, ...], Field(strict=False, fail_fast=True), Tag(TAG_PREFIX + "parts")]
_Answers = Annotated[tuple[AnswerPart, ...], Field(strict=False, fail_fast=True), Tag(TAG_PREFIX + "parts")]

InstructionContent = Annotated[Text | _Instructions | OtherContent, content_shape]
InputContent = Annotated[Text | _Inputs | OtherContent, content_shape]
AnswerContent = Annotated[Text | _Answers | OtherContent, content_shape]
