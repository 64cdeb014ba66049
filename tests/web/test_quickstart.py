"""The snippets work as pasted."""

import ast
import code
import json
import shlex
from typing import Any

import pytest

from responses_api.web.quickstart import PLACEHOLDER, quickstart

ODD = 'it\'s a "model" $(id) \\ `x` é'


@pytest.mark.parametrize("model", ["smollm2-135m", ODD])
def test_the_curl_line_is_one_command(model: str) -> None:
    """Whatever the model's name, the shell passes a JSON body with it."""
    snippet = quickstart("http://127.0.0.1:8080/v1/", model, False).curl
    words = shlex.split(snippet)
    assert words[:2] == ["curl", "http://127.0.0.1:8080/v1/responses"]
    assert json.loads(words[words.index("-d") + 1])["model"] == model
    assert "Authorization" not in snippet


@pytest.mark.parametrize("model", ["smollm2-135m", ODD])
def test_python_snippets_are_programs_with_these_values(model: str) -> None:
    """They parse, with the URL of the server and the name of the model."""
    snippets = quickstart("http://127.0.0.1:8080/v1", model, True)
    for snippet in (snippets.python, snippets.python_stream):
        constants = {node.value for node in ast.walk(ast.parse(snippet)) if isinstance(node, ast.Constant)}
        assert {"http://127.0.0.1:8080/v1", model, PLACEHOLDER} <= constants


def test_a_key_appears_only_where_one_is_needed() -> None:
    """A given key is used; where none is needed there is none."""
    needed = quickstart("http://h/v1", "m", True, key="sk-mlx-1")
    assert all("sk-mlx-1" in text for text in (needed.curl, needed.python, needed.python_stream))
    free = quickstart("http://h/v1", "m", False, key="sk-mlx-1")
    assert not any("sk-mlx-1" in text for text in (free.curl, free.python, free.python_stream))


def test_snippets_can_be_pasted_at_pythons_prompt() -> None:
    """Line by line: a block ends with an empty line before the next statement."""
    ran: list[Any] = []

    class Prompt(code.InteractiveConsole):
        def runcode(self, compiled: Any) -> None:
            ran.append(compiled)

        def showsyntaxerror(self, *args: Any, **kwargs: Any) -> None:
            raise AssertionError("the prompt refuses a line")

    snippets = quickstart("http://h/v1", "m", False)
    for snippet in (snippets.python, snippets.python_stream):
        prompt = Prompt()
        waiting = False
        for line in snippet.splitlines():
            waiting = prompt.push(line)
        assert not waiting
    assert not prompt.buffer
    assert ran
