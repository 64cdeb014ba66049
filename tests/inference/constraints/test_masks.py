"""A costly grammar fails its own sequence soon, and delays others little."""

import time
from collections.abc import Iterator

import pytest

from inference.constraints.masks import Masks
from inference.constraints.matching import TOO_COMPLEX, TOO_SLOW, Matcher, Vocabulary, byte_tokenizer
from inference.types import Constraint

MANY = "\n".join(
    (
        'start: "abcdefgh" e',
        *(f'r{number}: "a" | "b" | e' for number in range(300)),
        "e: " + " | ".join(f"r{number} e" for number in range(300)) + " | /[a-z]/ |",
    )
)
"""Looks harmless for eight letters; the mask after them takes seconds."""
PLAIN = Constraint(kind="regex", text="[a-z]*")


@pytest.fixture
def masks() -> Iterator[Masks]:
    masks = Masks()
    yield masks
    masks.close()


def matcher(constraint: Constraint) -> Matcher:
    return Vocabulary(byte_tokenizer()).matcher(constraint)


def test_a_mask_that_takes_too_long_is_given_up_and_others_continue(masks: Masks) -> None:
    costly, plain = matcher(Constraint(kind="lark", text=MANY)), matcher(PLAIN)
    assert masks.next(costly, None)
    began = time.monotonic()
    for letter in b"abcdefgh":
        masks.next(costly, letter)
    assert masks.next(costly, ord("a")) == b""
    assert masks.next(plain, None)
    assert masks.next(plain, ord("a"))
    assert time.monotonic() - began < 5
    assert (costly.has_failed, costly.may_end, costly.must_end) == (True, False, True)
    assert costly.sentence in (TOO_SLOW, TOO_COMPLEX)
    assert (plain.has_failed, plain.may_end) == (False, True)


def test_a_sequence_whose_masks_repeatedly_take_long_is_given_up() -> None:
    costly = matcher(PLAIN)
    spent = 0
    while costly.spend(0.09, share=0.01, burst=1.0):
        spent += 1
    assert 10 < spent < 15
    usual = matcher(PLAIN)
    assert all(usual.spend(0.009, share=0.01, burst=1.0) for _ in range(10_000))


def test_a_matcher_that_fails_by_itself_has_no_mask(masks: Masks) -> None:
    failing = matcher(Constraint(kind="regex", text="ab"))
    masks.next(failing, None)
    masks.next(failing, ord("x"))
    assert masks.next(failing, None) == b""
    assert failing.sentence == TOO_COMPLEX
