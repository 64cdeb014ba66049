"""The bytes of tokens, for the log-probabilities of the sequences whose requests ask for them."""

from collections.abc import Callable

from inference.decoding.scores import Scores
from inference.engine.detokenizer import BytesDetokenizer, Detokenizer
from inference.types import TokenLogprob


class Spelling:
    """The bytes of a model's tokens; empty for tokens that are not text, and for ids beyond the tokenizer's."""

    def __init__(self, new_detokenizer: Callable[[], Detokenizer]) -> None:
        self._new_detokenizer = new_detokenizer
        detokenizer = new_detokenizer()
        self._table = detokenizer.token_bytes if isinstance(detokenizer, BytesDetokenizer) else None
        self._known: dict[int, bytes] = {}

    def describe(self, token: int, scores: Scores, *, text: str) -> TokenLogprob:
        """The chosen token and its scores, with their bytes.

        `text` is the text that the token completed. Where tokens are not bytes, its bytes are those of the token, so
        that the bytes of an answer's tokens, joined, are its text.
        """
        spelt = _utf8(text) if self._table is None else self.spell(token)
        top = tuple((spelt if other == token else self.spell(other), value) for other, value in scores.top)
        return TokenLogprob(token=spelt, logprob=scores.chosen, top=top)

    def spell(self, token: int) -> bytes:
        """The bytes of one token."""
        if self._table is not None:
            return self._table[token] if token < len(self._table) else b""
        if token not in self._known:
            detokenizer = self._new_detokenizer()
            detokenizer.add(token)  # before itself: tokenizers drop the space at the beginning of a text
            self._known[token] = _utf8(detokenizer.add(token))
        return self._known[token]


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")
