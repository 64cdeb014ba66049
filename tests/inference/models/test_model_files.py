"""Reading a model's files without a model library."""

import json
from pathlib import Path
from typing import Any

import pytest

from inference.engine.detokenizer import byte_level_tokens
from inference.models.model_files import chat_template, read_dialect, special_tokens

HERMES = "{% if tools %}{% endif %}<tool_call>"
MISTRAL = "{% if tools %}{% endif %}[TOOL_CALLS]"


def write(directory: Path, **files: Any) -> Path:
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (directory / name.replace("_DOT_", ".")).write_text(text)
    return directory


def tokenizer(*added: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": {"vocab": {"a": 0}},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": number + 1, **token} for number, token in enumerate(added)],
    }


def test_a_template_in_a_file_of_its_own_comes_first(tmp_path: Path) -> None:
    write(tmp_path, chat_template_DOT_jinja=MISTRAL, tokenizer_config_DOT_json={"chat_template": HERMES})
    assert read_dialect(tmp_path).name == "mistral"


def test_of_several_templates_the_one_for_tools_counts(tmp_path: Path) -> None:
    named = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": MISTRAL}]
    write(tmp_path, tokenizer_config_DOT_json={"chat_template": named})
    assert chat_template(tmp_path) == MISTRAL


@pytest.mark.parametrize("broken", ["", "[]", "{", '{"chat_template": 5}'])
def test_files_without_information_are_not_an_error(tmp_path: Path, broken: str) -> None:
    """Tools are then shown by a template of ours."""
    write(tmp_path, tokenizer_config_DOT_json=broken, tokenizer_DOT_json=broken)
    dialect = read_dialect(tmp_path)
    assert (dialect.name, dialect.own_template, dialect.thinks) == ("hermes", True, False)
    assert special_tokens(tmp_path) == {}


def test_a_marker_that_is_a_special_token_is_text_for_its_dialect_alone(tmp_path: Path) -> None:
    tokens = ({"content": "[TOOL_CALLS]", "special": True}, {"content": "</s>", "special": True}, {"content": "<x>"})
    write(tmp_path, tokenizer_DOT_json=tokenizer(*tokens))
    assert special_tokens(tmp_path) == {"[TOOL_CALLS]": 1, "</s>": 2}
    file = tmp_path / "tokenizer.json"
    assert byte_level_tokens(file) == [b"a", b"", b"", b"<x>"]
    assert byte_level_tokens(file, shown={"[TOOL_CALLS]"}) == [b"a", b"[TOOL_CALLS]", b"", b"<x>"]
