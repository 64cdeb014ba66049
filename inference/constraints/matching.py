"""Constrained decoding: which tokens may come next so that the answer can still satisfy its constraint.

Needs llguidance, which is not a model library: it imports quickly, and checks grammars without a model.

Guarantees for JSON: the only white space is one space after a comma and after a colon, so that no schema lets a model
pad forever; references are never fetched; patterns run in linear time. Nothing raises while tokens are chosen.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import Any

from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper

from inference.constraints.plain_tokenizer import with_hidden_specials
from inference.types import Constraint, ModelError

_JSON_OPTIONS: Any = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "coerce_one_of": False,
    "lenient": False,
    "json_allow_general_unicode_escapes": True,
}
_LIMITS = LLParserLimits(verbose_errors=False, max_items_in_row=10_000, step_max_items=10_000, max_lexer_states=64_000)
"""10,000 alternatives at one place: 512 optional properties need 2,039, a grammar of 5,000 words 5,004. A state of the
lexer takes up to 2 kB."""
_MOST_CACHED = 64  # compiled grammars per model
_LARGEST_CACHED = 1 << 19  # characters of a grammar

TOO_COMPLEX = (
    "The answer came to a place where its schema, tools or grammar are too complex to be enforced. Simplify them."
)
TOO_SLOW = (
    "The grammar, tools or schema of the answer are so ambiguous that enforcing them takes too long. Simplify them: "
    "give each text one way to be read."
)
_BYTES_CHECKED = 3
"""How many bytes of a text `constraint_error` walks in search of an error."""

END = 256
"""The id that ends a text in the vocabulary of bytes."""


class Matcher:
    """The position of one sequence in its grammar. It never raises; `error` has the error."""

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher
        self._is_slow = False
        self._saved_seconds: float | None = None
        self.mask_seconds = 0.0
        """The CPU time of the latest mask."""

    @property
    def has_failed(self) -> bool:
        return self._is_slow or self._matcher.is_error()

    @property
    def error(self) -> str:
        """The error in one line; empty for none. After an error, every mask allows only the end."""
        if self._is_slow:
            return "its masks took too long"
        return _first_line(self._matcher.get_error()) if self._matcher.is_error() else ""

    @property
    def sentence(self) -> str:
        """The error for the user."""
        return TOO_SLOW if self._is_slow else TOO_COMPLEX

    @property
    def may_end(self) -> bool:
        """The text so far is complete; it may continue unless `must_end`."""
        return not self._is_slow and self._matcher.is_accepting()

    @property
    def must_end(self) -> bool:
        """Only the end can follow."""
        return self._is_slow or self._matcher.is_stopped()

    def fail_as_slow(self) -> None:
        """Fail for taking too long. A computation that still runs on another thread is ignored."""
        self._is_slow = True

    def spend(self, seconds: float, *, share: float, burst: float) -> bool:
        """Count the time of a mask; false if its sequence has used more than `share` per mask and `burst` beyond."""
        self.mask_seconds = seconds
        saved = burst if self._saved_seconds is None else min(burst, self._saved_seconds + share)
        self._saved_seconds = saved - seconds
        return self._saved_seconds >= 0

    def mask(self) -> bytes:
        """One byte per token of the vocabulary; 0 for tokens that can't follow."""
        return self._matcher.compute_logit_bias()

    def advance(self, token: int) -> None:
        """Take the chosen token."""
        self._matcher.consume_token(token)

    def forced(self) -> list[int]:
        """The tokens that spell what must follow, as far as they don't depend on what comes after it; often none."""
        return self._matcher.compute_ff_tokens()

    def count_allowed(self, tokens: Sequence[int]) -> int:
        """How many of the tokens, from the first, can follow; takes none."""
        return self._matcher.validate_tokens(list(tokens))

    def advance_while_allowed(self, tokens: Sequence[int]) -> int:
        """Take as many of the tokens, from the first, as can follow; returns how many."""
        return self._matcher.try_consume_tokens(list(tokens))


class Vocabulary:
    """The tokens of a model, for grammars. Built once per model, which takes 0.3 to 2 s. Thread-safe."""

    def __init__(self, tokenizer: LLTokenizer) -> None:
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._compiled: OrderedDict[Constraint, LLMatcher] = OrderedDict()

    @classmethod
    def from_json(cls, tokenizer_json: str, *, stop_tokens: Sequence[int]) -> "Vocabulary":
        """From the text of a tokenizer.json. Raises whatever llguidance raises for one that it can't use."""
        return cls(LLTokenizer(with_hidden_specials(tokenizer_json), eos_token=list(stop_tokens)))

    def cached_matcher(self, constraint: Constraint) -> Matcher | None:
        """A matcher at the start of the text; None for a constraint that has to be compiled. Returns at once."""
        with self._lock:
            compiled = self._compiled.get(constraint)
            if compiled is None:
                return None
            self._compiled.move_to_end(constraint)
            return Matcher(compiled.deep_copy())

    def matcher(self, constraint: Constraint) -> Matcher:
        """A matcher at the start of the text. Raises ModelError for a constraint that can't be enforced.

        A new constraint is compiled and its first mask computed, which may take seconds: don't call it on the engine's
        thread.
        """
        matcher = self.cached_matcher(constraint)
        if matcher is not None:
            return matcher
        compiled = _compile(self._tokenizer, constraint)
        if compiled.is_error():
            raise ModelError(f"The constraint can't be enforced ({_first_line(compiled.get_error())}).")
        compiled.compute_logit_bias()
        if compiled.is_error():
            raise ModelError(TOO_SLOW)
        matcher = Matcher(compiled.deep_copy())
        if len(constraint.text) <= _LARGEST_CACHED:
            with self._lock:
                self._compiled[constraint] = compiled
                if len(self._compiled) > _MOST_CACHED:
                    self._compiled.popitem(last=False)
        return matcher


def grammar(constraint: Constraint) -> str:
    """The constraint as llguidance's grammar. Raises ModelError for a schema that is not a JSON object."""
    if constraint.kind == "lark":
        return LLMatcher.grammar_from_lark(constraint.text)
    if constraint.kind == "regex":
        return LLMatcher.grammar_from_regex(constraint.text)
    schema = constraint.text if constraint.kind == "json_schema" else '{"type": "object"}'
    try:
        return LLMatcher.grammar_from_json_schema(schema, overrides=_JSON_OPTIONS)
    except ValueError as error:
        raise ModelError(f"The schema is not a JSON object ({_first_line(str(error))}).") from None


def constraint_error(constraint: Constraint) -> str:
    """Why the constraint can't be enforced, a phrase of one line; empty when it can. Any thread."""
    try:
        matcher = _compile(byte_tokenizer(), constraint)
    except ModelError as error:
        return str(error)
    for _ in range(_BYTES_CHECKED):  # finds grammars without any text, and those that are too large at their beginning
        mask = matcher.compute_logit_bias()
        byte = next((byte for byte in range(END) if mask[byte]), None)
        if byte is None or matcher.is_error():
            break
        matcher.consume_token(byte)
    return _first_line(matcher.get_error()) if matcher.is_error() else ""


@cache
def byte_tokenizer() -> LLTokenizer:
    """A vocabulary of the 256 bytes and END, for checks and for models without a tokenizer."""
    return LLTokenizer(TokenizerWrapper(_Bytes()), n_vocab=END + 1, eos_token=[END])


@cache
def byte_vocabulary() -> Vocabulary:
    """The vocabulary of `byte_tokenizer`, with its compiled constraints."""
    return Vocabulary(byte_tokenizer())


class _Bytes:
    """The tokenizer interface that llguidance expects."""

    eos_token_id = END
    bos_token_id = None
    tokens = (*(bytes((number,)) for number in range(256)), b"<|end|>")
    special_token_ids = (END,)

    def __call__(self, text: bytes) -> list[int]:
        return list(text)


def _compile(tokenizer: LLTokenizer, constraint: Constraint) -> LLMatcher:
    return LLMatcher(tokenizer, grammar(constraint), log_level=0, limits=_LIMITS)


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0].rstrip(".:")
    return "it is too large" if line.startswith("panic") else line
