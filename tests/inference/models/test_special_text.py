"""Special texts are found wherever they stand, and in linear time."""

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from inference.models import special_text
from inference.models.special_text import SpecialTexts

TEXTS = ("<|a|>", "<|a|>b", "<|", "xx")


@given(st.lists(st.sampled_from(["<|a|>", "b", "<|", "x", "xx", "|>", " ", "a"]), max_size=30).map("".join))
def test_a_text_is_split_as_if_it_were_searched_whole(text: str) -> None:
    whole = re.split("(" + "|".join(map(re.escape, sorted(TEXTS, key=len, reverse=True))) + ")", text)
    expected = list(zip(whole[::2], [*whole[1::2], ""], strict=True))
    for size in (6, 7, 1 << 16):
        special_text._SLICE = size
        assert list(SpecialTexts(TEXTS).split(text)) == expected
    special_text._SLICE = 1 << 16


def test_many_and_none_take_as_long_as_the_text_is() -> None:
    began = time.thread_time()
    assert len(list(SpecialTexts(["<|im_end|>", "<|im_start|>"]).split("<|im_end|>" * 60_000))) == 60_001
    assert list(SpecialTexts(["<|im_end|>"]).split("<|im_en" * 100_000)) == [("<|im_en" * 100_000, "")]
    assert list(SpecialTexts([]).split("text")) == [("text", "")]
    assert time.thread_time() - began < 5
