"""Counted tokens."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from responses_api.protocol.objects.fields import Count


class InputTokensDetails(TypedDict):
    """Parts of the input tokens."""

    cached_tokens: Count
    cache_write_tokens: Count


class OutputTokensDetails(TypedDict):
    """Parts of the output tokens."""

    reasoning_tokens: Count


class Usage(TypedDict):
    """Counted tokens."""

    input_tokens: Count
    input_tokens_details: InputTokensDetails
    output_tokens: Count
    output_tokens_details: OutputTokensDetails
    total_tokens: Count


class InputTokens(TypedDict):
    """The number of tokens in the rendered input."""

    object: Literal["response.input_tokens"]
    input_tokens: Count


def usage(
    *,
    input_tokens: int,
    output_tokens: int,
    cached_tokens: int,
    cache_write_tokens: int,
    reasoning_tokens: int = 0,
) -> Usage:
    """Token counts in wire form. All are counted, none is estimated."""
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": cached_tokens, "cache_write_tokens": cache_write_tokens},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
        "total_tokens": input_tokens + output_tokens,
    }


def input_tokens(count: int) -> InputTokens:
    """The answer of `/responses/input_tokens`."""
    return {"object": "response.input_tokens", "input_tokens": count}
