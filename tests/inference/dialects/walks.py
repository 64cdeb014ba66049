"""Texts that a grammar allows, found by walking through it byte by byte."""

import random
from functools import cache
from typing import Any

from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

END = 256
_LIKELY = b'"}])>|<,:{0e'
"""Bytes that close something, so that walks end."""


class _Bytes:
    eos_token_id = END
    bos_token_id = None
    tokens = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    special_token_ids = [END]

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


@cache
def _tokenizer() -> LLTokenizer:
    return LLTokenizer(TokenizerWrapper(_Bytes()), n_vocab=END + 1, eos_token=[END])


def matcher(lark: str) -> LLMatcher:
    grammar = LLMatcher.grammar_from_lark(lark)
    is_invalid, messages = LLMatcher.validate_grammar_with_warnings(grammar, _tokenizer())
    assert not is_invalid, messages
    return LLMatcher(_tokenizer(), grammar)


def allows(lark: str, text: str) -> bool:
    """The grammar allows this text as a whole answer."""
    walker, wanted = matcher(lark), list(text.encode())
    return bool(walker.try_consume_tokens(wanted) == len(wanted) and walker.is_accepting())


def reach(lark: str, text: str) -> int:
    """How many bytes of the text the grammar allows."""
    return int(matcher(lark).try_consume_tokens(list(text.encode())))


def walk(lark: str, chance: random.Random, *, start: str = "", steps: int = 600) -> tuple[str, bool]:
    """A text that the grammar allows, beginning with `start`, and whether it came to its end."""
    walker: Any = matcher(lark)
    text = bytearray(start.encode())
    assert walker.try_consume_tokens(list(text)) == len(text)
    for step in range(steps):
        mask = walker.compute_logit_bias()
        if mask[END] and chance.random() < 0.2:
            break
        allowed = [byte for byte in range(128) if mask[byte] and (byte >= 32 or byte == 10)]
        allowed = allowed or [byte for byte in range(256) if mask[byte]]
        if not allowed:
            break
        closing = [byte for byte in _LIKELY if mask[byte]]
        likely = closing and chance.random() < 0.2 + step / steps
        byte = closing[0] if likely and step > steps / 2 else chance.choice(closing if likely else allowed)
        text.append(byte)
        assert walker.consume_token(byte)
    return text.decode(errors="ignore"), bool(walker.is_accepting())
