"""Assigns tokens' log-probabilities to a message's text; markup and the white space next to it have none. Pure."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence

from inference.calls import Span
from inference.types import TokenLogprob
from responses_api.protocol.objects import items as objects
from responses_api.protocol.objects.items import Logprob


class LogprobAligner:
    """Takes all tokens of an answer, and returns those that spell a part of it, each part once and in order.

    The bytes of the returned entries are exactly those of the text: of a token that is partly markup only the text, and
    of a character that several tokens spell all of them.
    """

    def __init__(self) -> None:
        self._tokens: list[tuple[int, TokenLogprob]] = []
        """The tokens, each with the index of its first byte."""
        self._next = 0  # the first token that may still be needed
        self._bytes = 0
        self._starts = [0]
        """The index of each character's first byte, and the end."""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, tokens: Iterable[TokenLogprob]) -> None:
        """Take tokens from the engine."""
        for token in tokens:
            self._tokens.append((self._bytes, token))
            for byte in token.token:
                characters = self._decoder.decode(bytes((byte,)))
                # An invalid sequence is recognised at the byte after it: then one byte gives several characters.
                self._starts += [self._bytes] * (len(characters) - 1)
                self._bytes += 1
                self._starts += [self._bytes] * bool(characters)

    def take(self, spans: Iterable[Span]) -> list[Logprob]:
        """The entries, in wire form, of the tokens that spell these parts of the answer."""
        entries: list[Logprob] = []
        for first, end in spans:
            if end < len(self._starts):
                entries += self._entries(self._starts[first], self._starts[end])
        return entries

    def _entries(self, first: int, end: int) -> list[Logprob]:
        entries: list[Logprob] = []
        while self._next < len(self._tokens):
            start, token = self._tokens[self._next]
            stop = start + len(token.token)
            part = token.token[max(0, first - start) : max(0, end - start)]
            if part:
                entries.append(_wire(part, token))
            if stop > end:
                break
            self._next += 1
        return entries


def _wire(part: bytes, token: TokenLogprob) -> Logprob:
    return {**_entry(part, token.logprob), "top_logprobs": _top(token.top)}


def _top(top: Sequence[tuple[bytes, float]]) -> list[objects.TokenLogprob]:
    return [_entry(other, logprob) for other, logprob in top]


def _entry(token: bytes, logprob: float) -> objects.TokenLogprob:
    return {"token": token.decode(errors="replace"), "bytes": list(token), "logprob": logprob}
