"""An engine's chunks as text, stored with a job's events: when fed again, they give the same events. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from inference.types import Chunk, TokenLogprob

RECORD_VERSION = 2
"""The version of the code between chunks and events (parsers, builder). A job is resumed only by the same version."""


def encode_feeds(feeds: Sequence[Sequence[Chunk]]) -> str:
    """The chunks as JSON, by what was fed together, since chunks that are fed together give one delta.

    Their finish isn't stored: a job can be resumed after stored chunks.
    """
    return orjson.dumps([[_record(chunk) for chunk in feed] for feed in feeds]).decode() if feeds else ""


def decode_feeds(text: str) -> list[list[Chunk]]:
    """The chunks by what was fed together, without the id of their request, which isn't stored."""
    return [[_chunk(record) for record in feed] for feed in orjson.loads(text)] if text else []


def holds_tokens(text: str) -> bool:
    """Whether any of these chunks has tokens, unlike the start of a sequence. No JSON string contains this text."""
    return '"tokens":' in text


def _record(chunk: Chunk) -> dict[str, Any]:
    record: dict[str, Any] = {}
    if chunk.text:
        record["text"] = chunk.text
    if chunk.tokens:
        record["tokens"] = chunk.tokens
    if chunk.logprobs:
        record["logprobs"] = [_logprob_record(entry) for entry in chunk.logprobs]
    if chunk.started:
        record["cached_tokens"] = chunk.cached_tokens
    return record


def _logprob_record(entry: TokenLogprob) -> list[Any]:
    return [_latin1(entry.token), entry.logprob, [[_latin1(token), logprob] for token, logprob in entry.top]]


def _chunk(record: dict[str, Any]) -> Chunk:
    return Chunk(
        request_id="",
        text=record.get("text", ""),
        tokens=tuple(record.get("tokens", ())),
        logprobs=tuple(
            TokenLogprob(
                token=_bytes(token), logprob=logprob, top=tuple((_bytes(other), value) for other, value in top)
            )
            for token, logprob, top in record.get("logprobs", ())
        ),
        started="cached_tokens" in record,
        cached_tokens=record.get("cached_tokens", 0),
    )


def _latin1(token: bytes) -> str:
    return token.decode("latin-1")


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")
