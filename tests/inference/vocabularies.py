"""Vocabularies for constraints on models that were never trained."""

from llguidance import LLTokenizer, TokenizerWrapper

from inference.constraints.matching import Vocabulary


def byte_vocabulary(size: int, *, stop: int) -> Vocabulary:
    """Token n below 256 is the byte n, `stop` ends a turn, and the others are special."""

    class Tokens:
        eos_token_id = stop
        bos_token_id = None
        tokens = [bytes((number,)) if number < 256 else b"<|%d|>" % number for number in range(size)]
        special_token_ids = list(range(256, size))

        def __call__(self, text: bytes) -> list[int]:
            return list(text)

    return Vocabulary(LLTokenizer(TokenizerWrapper(Tokens()), n_vocab=size, eos_token=[stop]))
