"""`manage.py models`: its output for people and programs."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from inference import Registry
from responses_api.management.model_facts import Machine
from tests.inference.tiny import write_model
from tests.inference.tiny_llama import STATE_BYTES_PER_TOKEN, write_tiny_llama
from tests.processes import run_python


@pytest.fixture
def models(settings: Any, tmp_path: Path):
    """The command with its own data directory. Returns its output."""
    settings.RESPONSES_DATA_DIR = tmp_path / "data"

    def run(*arguments: str) -> str:
        out = io.StringIO()
        call_command("models", *arguments, stdout=out)
        return out.getvalue()

    return run


def test_a_model_is_added_named_shown_and_removed(models, tmp_path: Path) -> None:
    """Each step reports what it did, for people as lines and for programs as JSON."""
    source = write_model(tmp_path / "a-model-with-a-long-name-that-no-list-may-cut")
    assert "no model yet" in models("list")
    assert "no model yet" in models()
    assert source.name in models("add", str(source))
    assert json.loads(models("alias", "gpt-4o-mini", source.name, "--json"))["aliases"] == ["gpt-4o-mini"]
    listed = models("list")
    assert source.name in listed
    assert "gpt-4o-mini" in listed
    assert json.loads(models("list", "--json"))[0]["context_length"] == 512
    assert source.name in models("show", "gpt-4o-mini")
    assert "Removed" in models("alias", "gpt-4o-mini", "--remove")
    assert json.loads(models("rm", source.name, "--json")) == {"name": source.name, "removed": True}
    assert json.loads(models("list", "--json")) == []


def test_what_a_model_needs_and_what_fits_is_shown(models, settings: Any, tmp_path: Path) -> None:
    """Its memory against this machine's, how it calls tools and how it thinks."""
    models("add", str(write_tiny_llama(tmp_path / "tiny")))
    assert "  yes  " in models("list")
    shown = json.loads(models("show", "tiny", "--json"))
    assert shown["fits_tokens"] == shown["context_length"] == 4096
    assert shown["memory_bytes_per_token"] == STATE_BYTES_PER_TOKEN
    assert (shown["dialect"], shown["thinks"], shown["thinking_markers"]) == ("hermes", False, None)
    footprint = Machine.this().footprint(Registry(settings.RESPONSES_DATA_DIR).get_model("tiny"))
    settings.RESPONSES_MEMORY_BYTES = footprint.needs(768)
    assert "  up to 768 tokens  " in models("list")
    assert "conversations up to 768 tokens" in models("show", "tiny")
    settings.RESPONSES_MEMORY_BYTES = shown["memory_bytes"] - 1
    listed = models("list")
    assert "  no  " in listed
    assert "(RESPONSES_MEMORY_BYTES)" in listed
    assert "no, models may use only" in models("show", "tiny")


def test_the_model_of_requests_that_name_none_is_shown(models, settings: Any, tmp_path: Path) -> None:
    """By name or alias; otherwise the list says that it is missing."""
    models("add", str(write_model(tmp_path / "one")))
    assert "use smollm2-135m (RESPONSES_DEFAULT_MODEL), which is not on this machine." in models("list")
    models("alias", "smollm2-135m", "one")
    assert "use smollm2-135m (RESPONSES_DEFAULT_MODEL)." in models("list")


def test_how_a_model_thinks_is_shown(models, tmp_path: Path) -> None:
    """Between which markers, and by which switches of its template; or in channels."""
    template = "{% if enable_thinking %}{% endif %}{{ tools }}<think></think>"
    for name, text, words in (
        ("thinker", template, "between <think> and </think>, with enable_thinking in its template"),
        ("harmony", "<|channel|>analysis{{ tools }}", "in the channels of harmony"),
    ):
        directory = write_model(tmp_path / name)
        (directory / "chat_template.jinja").write_text(text)
        assert words in models("add", str(directory))


def test_an_impossible_command_gives_one_sentence(models, tmp_path: Path) -> None:
    """The sentence says what is wrong."""
    (tmp_path / "no.gguf").write_text("not a model")
    (tmp_path / "empty").mkdir()
    for arguments, words in (
        (("show", "nobody"), "no model 'nobody'"),
        (("rm", "nobody"), "no model 'nobody'"),
        (("alias", "a", "nobody"), "no model 'nobody'"),
        (("alias", "a"), "Give a model"),
        (("add", str(tmp_path / "nothing")), "nothing at"),
        (("add", str(tmp_path / "empty")), r"config\.json"),
        (("add", str(tmp_path / "no.gguf")), "not a GGUF file"),
        (("pull", "--revision", "main"), "go with a repository"),
    ):
        with pytest.raises(CommandError, match=words) as refused:
            models(*arguments)
        assert "\n" not in str(refused.value)


def test_an_error_prints_no_traceback(tmp_path: Path) -> None:
    """Status 1 and one line."""
    ended = run_python("manage.py", "models", "show", "nobody", data_dir=tmp_path)
    assert ended.returncode == 1
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
