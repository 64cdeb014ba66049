"""The body of `POST /v1/responses/compact`."""

from __future__ import annotations

from typing import Annotated, Any, Never

from pydantic import Field, PlainValidator, ValidationInfo, model_validator

from responses_api.protocol.items.base import ClientId
from responses_api.protocol.requests import parameters as p
from responses_api.protocol.requests.create import Input
from responses_api.protocol.validation.base import WireModel, is_admitted, refusal
from responses_api.protocol.validation.markers import Allows, Refused
from responses_api.protocol.validation.parsing import parse_body, restore_body

SUMMARY_TOKENS = 1024
MAX_SUMMARY_TOKENS = 16_384


def _refuse_stream(value: object) -> object:
    if value is not False:
        raise refusal("unsupported_parameter", "is not a parameter of this route, which answers as a whole; remove it")
    return value


def _refuse_conversation(value: object) -> Never:
    raise refusal(
        "unsupported_parameter", "is not a parameter of this route; send the items, or `previous_response_id`"
    )


class CompactRequest(WireModel):
    """The body of `POST /v1/responses/compact`."""

    model: p.ModelName
    input: Input = ()
    instructions: str | None = None
    previous_response_id: ClientId | None = None
    keep_tokens: p.Positive | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=MAX_SUMMARY_TOKENS)] = SUMMARY_TOKENS
    stream: Annotated[Any, PlainValidator(_refuse_stream), Allows(const=False)] = False
    conversation: Annotated[Any, Refused(_refuse_conversation)] = None

    # hints for caches and tiers elsewhere: validated, without an effect on a summary
    prompt_cache_key: p.PromptCacheKey | None = None
    prompt_cache_options: p.PromptCacheOptions | None = None
    prompt_cache_retention: p.PromptCacheRetention | None = None
    service_tier: p.ServiceTier = "default"

    @model_validator(mode="after")
    def _check_input(self, info: ValidationInfo) -> CompactRequest:
        if not is_admitted(info) and self.input == () and self.previous_response_id is None:
            reason = "is missing; send the history to compact, or name its last response by `previous_response_id`"
            raise refusal("missing_required_parameter", reason, field="input")
        return self


def parse_compact(payload: object) -> CompactRequest:
    """Check a request body. Raises an ApiError (400) that names one error."""
    return parse_body(CompactRequest, payload)


def restore_compact(text: str) -> CompactRequest:
    """An admitted request, from its body as stored JSON text. Raises what `restore_body` does."""
    return restore_body(CompactRequest, text)
