"""Text of a grammar that looks like a special token is spelled with ordinary tokens."""

import json
from typing import Any

import pytest

from inference.constraints.matching import Vocabulary
from inference.types import Constraint

SPECIALS = ("<|end|>", "<|im_start|>", "<|im_end|>")
END = 256


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    """Byte-level BPE without merges: a token for each byte, and the specials, one of them in the model's vocabulary."""
    letters = _letters()
    vocab = {letter: number for number, letter in enumerate(letters)} | {SPECIALS[0]: END}
    added = [
        {
            "id": END + number,
            "content": text,
            "special": True,
            "normalized": False,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
        }
        for number, text in enumerate(SPECIALS)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": SPECIALS[0], "vocab": vocab, "merges": []},
    }
    return Vocabulary.from_json(json.dumps(tokenizer, ensure_ascii=False), stop_tokens=(END,))


def _letters() -> list[str]:
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte) if byte in visible else chr(256 + hidden.index(byte)) for byte in range(256)]


@pytest.mark.parametrize("special", SPECIALS)
@pytest.mark.parametrize(
    ("kind", "grammar", "text"),
    [
        ("json_schema", '{"const": "a%s"}', '"a%s"'),
        ("json_schema", '{"enum": ["%sb"]}', '"%sb"'),
        (
            "json_schema",
            '{"properties": {"%s": {"type": "null"}}, "required": ["%s"], "type": "object", "maxProperties": 1}',
            '{"%s": null}',
        ),
        ("json_schema", '{"type": "string", "pattern": "^x%sy$"}', '"x%sy"'),
        ("regex", "x%sy", "x%sy"),
        ("lark", 'start: "x%sy"', "x%sy"),
        ("lark", "start: /x%sy/", "x%sy"),
        ("lark", 'start: %%json {"const": "%s"}', '"%s"'),
    ],
)
def test_the_text_of_a_special_token_is_written_as_text(
    vocabulary: Vocabulary, special: str, kind: Any, grammar: str, text: str
) -> None:
    is_pattern = kind == "regex" or "/" in grammar or "pattern" in grammar
    inside = special.replace("|", "[|]") if is_pattern else special
    matcher = vocabulary.matcher(Constraint(kind=kind, text=grammar.replace("%s", inside).replace("%%", "%")))
    written = bytearray()
    while not matcher.must_end:
        allowed = [token for token, may in enumerate(matcher.mask()) if may]
        if END in allowed and matcher.may_end:
            break
        assert matcher.error == ""
        matcher.advance(allowed[0])
        assert matcher.error == ""
        written.append(allowed[0])
    assert written.decode() == text.replace("%s", special)
