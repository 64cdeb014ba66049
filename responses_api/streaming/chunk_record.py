"""What an engine made, as text that is kept beside a job's events: fed again, it gives the same events. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from inference.types import Chunk, TokenLogprob

RECORD_VERSION = 1
"""Of everything between chunks and events (dialect parsers, stream builder): a job goes on only under the same one."""


def encode_chunks(chunks: Sequence[Chunk]) -> str:
    """The chunks as JSON, without how they finish: what is kept can be gone on with."""
    return orjson.dumps([_record(chunk) for chunk in chunks]).decode() if chunks else ""


def decode_chunks(text: str) -> list[Chunk]:
    """The chunks again; their request is not among what is kept."""
    return [_chunk(record) for record in orjson.loads(text)] if text else []


def holds_tokens(text: str) -> bool:
    """Whether any of these chunks has tokens: a beginning alone has none. A string in JSON can't have such quotes."""
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
    return [_letters(entry.token), entry.logprob, [[_letters(token), logprob] for token, logprob in entry.top]]


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


def _letters(token: bytes) -> str:
    return token.decode("latin-1")


def _bytes(letters: str) -> bytes:
    return letters.encode("latin-1")
