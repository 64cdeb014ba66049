"""The parts of a message's content: `input_text` from people, `output_text` and `refusal` from the assistant."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Never

from pydantic import Discriminator, Field, Tag

from responses_api.protocol.json.values import describe
from responses_api.protocol.validation.base import (
    OTHER,
    TAG_PREFIX,
    WireModel,
    closest,
    refusal,
    tag_of_shape,
    tag_of_type,
)
from responses_api.protocol.validation.markers import Refused

Bytes = Annotated[tuple[Annotated[int, Field(ge=0, le=255)], ...], Field(strict=False, fail_fast=True)]


class PromptCacheBreakpoint(WireModel):
    """A hint for other caches: validated and ignored, since the prefix cache here needs none."""

    mode: Literal["explicit"]
    ttl: Literal["30m", "12h"] | None = None


class InputText(WireModel):
    type: Literal["input_text"]
    text: str
    prompt_cache_breakpoint: PromptCacheBreakpoint | None = None

    def wire(self) -> dict[str, Any]:
        return {"type": "input_text", "text": self.text}


class FileCitation(WireModel):
    type: Literal["file_citation"]
    file_id: str
    filename: str
    index: int


class UrlCitation(WireModel):
    type: Literal["url_citation"]
    url: str
    title: str
    start_index: int
    end_index: int


class ContainerFileCitation(WireModel):
    type: Literal["container_file_citation"]
    container_id: str
    file_id: str
    filename: str
    start_index: int
    end_index: int


class FilePath(WireModel):
    type: Literal["file_path"]
    file_id: str
    index: int


class TopLogprob(WireModel):
    token: str
    bytes: Bytes = ()
    logprob: float


class Logprob(TopLogprob):
    top_logprobs: Annotated[tuple[TopLogprob, ...], Field(strict=False, fail_fast=True)] = ()


_ANNOTATIONS = ("file_citation", "url_citation", "container_file_citation", "file_path")
_INPUT_PARTS = ("input_text",)
_OUTPUT_PARTS = ("output_text", "refusal")
_MEDIA_PARTS = {"input_image": "images", "input_file": "files", "input_audio": "audio"}


def _quoted(names: tuple[str, ...]) -> str:
    return " or ".join(f"'{name}'" for name in names)


def _refuse(value: object, what: str, known: tuple[str, ...]) -> Never:
    if not isinstance(value, dict):
        raise refusal("invalid_value", f"must be an object, {what}, but it is {describe(value)}")
    kind = value.get("type")
    if kind is None:
        raise refusal("missing_required_parameter", f"is missing; {what} has the type {_quoted(known)}", field="type")
    right = f"{what} here has the type {_quoted(known)}{closest(kind, known)}"
    raise refusal("invalid_value", f"has the type {describe(kind)}; {right}")


def _refuse_annotation(value: object) -> Never:
    _refuse(value, "an annotation", _ANNOTATIONS)


def _refuse_input_part(value: object) -> Never:
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind in _MEDIA_PARTS:
        media = _MEDIA_PARTS[kind]
        raise refusal(
            "invalid_value", f"has the type '{kind}', but the model can't read {media}; send 'input_text' only"
        )
    _refuse(value, "a content part", _INPUT_PARTS)


def _refuse_output_part(value: object) -> Never:
    _refuse(value, "a content part of an assistant message", _OUTPUT_PARTS)


Annotation = Annotated[
    Annotated[FileCitation, Tag(TAG_PREFIX + "file_citation")]
    | Annotated[UrlCitation, Tag(TAG_PREFIX + "url_citation")]
    | Annotated[ContainerFileCitation, Tag(TAG_PREFIX + "container_file_citation")]
    | Annotated[FilePath, Tag(TAG_PREFIX + "file_path")]
    | Annotated[Never, Refused(_refuse_annotation), Tag(OTHER)],
    Discriminator(tag_of_type(*_ANNOTATIONS)),
]


class OutputText(WireModel):
    type: Literal["output_text"]
    text: str
    annotations: Annotated[tuple[Annotation, ...], Field(strict=False, fail_fast=True)] = ()
    logprobs: Annotated[tuple[Logprob, ...], Field(strict=False, fail_fast=True)] = ()

    def wire(self) -> dict[str, Any]:
        return {
            "type": "output_text",
            "text": self.text,
            "annotations": [annotation.model_dump(mode="json") for annotation in self.annotations],
            "logprobs": [logprob.model_dump(mode="json") for logprob in self.logprobs],
        }


class Refusal(WireModel):
    type: Literal["refusal"]
    refusal: str

    def wire(self) -> dict[str, Any]:
        return {"type": "refusal", "refusal": self.refusal}


InputPart = Annotated[
    Annotated[InputText, Tag(TAG_PREFIX + "input_text")] | Annotated[Never, Refused(_refuse_input_part), Tag(OTHER)],
    Discriminator(tag_of_type(*_INPUT_PARTS)),
]

OutputPart = Annotated[
    Annotated[OutputText, Tag(TAG_PREFIX + "output_text")]
    | Annotated[Refusal, Tag(TAG_PREFIX + "refusal")]
    | Annotated[Never, Refused(_refuse_output_part), Tag(OTHER)],
    Discriminator(tag_of_type(*_OUTPUT_PARTS)),
]


class SummaryText(WireModel):
    type: Literal["summary_text"]
    text: str

    def wire(self) -> dict[str, Any]:
        return {"type": "summary_text", "text": self.text}


class ReasoningText(WireModel):
    type: Literal["reasoning_text"]
    text: str

    def wire(self) -> dict[str, Any]:
        return {"type": "reasoning_text", "text": self.text}


def _refuse_content(value: object) -> Never:
    raise refusal("invalid_value", f"must be a string or an array of content parts, but it is {describe(value)}")


content_shape = Discriminator(tag_of_shape({str: "text", list: "parts"}))
OtherContent = Annotated[Never, Refused(_refuse_content), Tag(OTHER)]
Text = Annotated[str, Tag(TAG_PREFIX + "text")]
InputParts = Annotated[tuple[InputPart, ...], Field(strict=False, fail_fast=True), Tag(TAG_PREFIX + "parts")]
OutputParts = Annotated[tuple[OutputPart, ...], Field(strict=False, fail_fast=True), Tag(TAG_PREFIX + "parts")]
