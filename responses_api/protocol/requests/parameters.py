"""The parameters of a request besides model, input and sampling: echoed ones and unsupported ones.

A parameter that asks for something unsupported is refused by its name; a value that asks for nothing (null, an empty
list, the default) is accepted, and the response shows the effective value. Nothing is silently ignored.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Never

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from responses_api.protocol.items.base import ClientId
from responses_api.protocol.json.values import describe
from responses_api.protocol.requests.text_format import PlainText, TextFormat
from responses_api.protocol.validation.base import WireModel, closest, entries, refusal
from responses_api.protocol.validation.markers import Allows, AtMost, Refused

INCLUDABLE = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
ENCRYPTED_REASONING = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"

MAX_TOP_LOGPROBS = 20
MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512
MAX_CLIENT_METADATA_PAIRS = 256
MAX_COMPACT_THRESHOLD = 100_000_000
MAX_COUNT = 2**31 - 1
MAX_POLICIES = 1  # of `context_management`


def _unsupported(advice: str) -> Never:
    raise refusal("unsupported_parameter", f"asks for what this server does not support yet; {advice}")


def _refuse_always(value: object) -> Never:
    raise refusal("unsupported_parameter", "is not supported by this server; leave it out")


def _refuse_true(value: bool) -> bool:
    return _unsupported("leave it out or send false") if value else value


def _check_top_logprobs(value: int) -> int:
    if not 0 <= value <= MAX_TOP_LOGPROBS:
        raise refusal("invalid_value", f"must be 0 to {MAX_TOP_LOGPROBS}, but it is {describe(value)}")
    return value


def _check_mode(value: str) -> str:
    return value if value == "standard" else _unsupported("leave it out or send 'standard'")


def _check_includable(value: str) -> str:
    """A known `include` value that doesn't apply here is accepted."""
    if value not in INCLUDABLE:
        known = "; known are " + ", ".join(INCLUDABLE)
        raise refusal(
            "invalid_value", f"is {describe(value)}, which can't be included{closest(value, INCLUDABLE) or known}"
        )
    return value


def _check_metadata(value: dict[str, str]) -> dict[str, str]:
    for key in value:
        if len(key) > MAX_METADATA_KEY:
            raise refusal("invalid_value", f"has a key of {len(key)} characters; {MAX_METADATA_KEY} are allowed")
    return value


def _check_tier(value: object) -> Literal["default"]:
    if value not in ("auto", "default"):
        raise refusal(
            "invalid_value", f"must be 'auto' or 'default', for there is one tier, but it is {describe(value)}"
        )
    return "default"


ModelName = Annotated[str, Field(min_length=1, max_length=256)]
Temperature = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
TopP = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[int, Field(ge=1, le=MAX_COUNT)]
User = Annotated[str, Field(max_length=512)]
SafetyIdentifier = Annotated[str, Field(max_length=128)]
PromptCacheKey = Annotated[str, Field(max_length=256)]
PromptCacheRetention = Literal["in_memory", "24h"]
Verbosity = Literal["low", "medium", "high"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class StreamOptions(WireModel):
    include_obfuscation: bool = False  # accepted; no obfuscation is sent


class TextConfig(WireModel):
    format: TextFormat = PlainText(type="text")
    verbosity: Verbosity = "medium"


class PromptCacheOptions(WireModel):
    """Hints for other caches: echoed, since the prefix cache here needs none. `prewarm` is refused."""

    mode: Literal["implicit", "explicit"] = "implicit"
    ttl: Literal["30m", "12h"] = "30m"
    comparison_response_id: ClientId | None = None
    prewarm: Annotated[bool, AfterValidator(_refuse_true), Allows(const=False)] = False

    def wire(self) -> dict[str, Any]:
        return {"mode": self.mode, "ttl": self.ttl, "comparison_response_id": self.comparison_response_id}


class Reasoning(WireModel):
    """The reasoning effort, and which reasoning of earlier turns is shown. There is never a summary."""

    effort: Effort | None = None
    context: Literal["auto", "current_turn", "all_turns"] | None = None
    mode: Annotated[str, AfterValidator(_check_mode), Allows(const="standard")] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None

    def wire(self) -> dict[str, Any]:
        """The echoed form; fields that OpenAI's older types lack are included only if they were sent."""
        echo: dict[str, Any] = {"effort": self.effort, "summary": self.summary or self.generate_summary}
        newer = {"context": self.context, "mode": self.mode}
        return echo | {name: value for name, value in newer.items() if value is not None}


class Compaction(WireModel):
    """Compact the history when its rendering reaches `compact_threshold` tokens, or leaves no room for an answer."""

    type: Literal["compaction"]
    compact_threshold: Annotated[int, Field(ge=1, le=MAX_COMPACT_THRESHOLD)] | None = None


Unsupported = Annotated[Any, Refused(_refuse_always)]
ContextManagement = Annotated[
    tuple[Compaction, ...],
    Field(strict=False, fail_fast=True),
    AtMost(MAX_POLICIES),
]
TopLogprobs = Annotated[int, AfterValidator(_check_top_logprobs), Allows(minimum=0, maximum=MAX_TOP_LOGPROBS)]
Truncation = Literal["auto", "disabled"]
ServiceTier = Annotated[Literal["default"], PlainValidator(_check_tier), Allows(enum=["auto", "default"])]
Include = Annotated[
    tuple[Annotated[str, AfterValidator(_check_includable), Allows(enum=list(INCLUDABLE))], ...],
    Field(strict=False, fail_fast=True),
]
Metadata = Annotated[
    dict[str, Annotated[str, Field(max_length=MAX_METADATA_VALUE)]],
    AtMost(MAX_METADATA_PAIRS),
    AfterValidator(_check_metadata),
    Allows(propertyNames={"maxLength": MAX_METADATA_KEY}),
]
ClientMetadata = Annotated[
    dict[str, str],
    BeforeValidator(entries("a string", lambda value: isinstance(value, str))),
    AtMost(MAX_CLIENT_METADATA_PAIRS),
]
