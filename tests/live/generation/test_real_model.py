"""The README's snippets with the real model."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from openai import BadRequestError

from responses_site.setting_kinds import BASE_DIR
from tests.live.chat.chats import ask, user
from tests.live.chat.test_equality import FORMATS, TOOLS
from tests.live.server import LiveServer

pytestmark = pytest.mark.real_model


def snippets(language: str) -> str:
    """The README's code in one language, in order."""
    text = (BASE_DIR / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL))


@pytest.mark.timeout(1000)
def test_the_readme_s_snippets_work_as_pasted(real_server: LiveServer, tmp_path: Path) -> None:
    """Sync, streaming, three turns, retrieve, input items, delete, and curl: all of it answers in English.

    The answers are limited, as the model would take minutes.
    """
    here = f"127.0.0.1:{real_server.port}"
    program = tmp_path / "readme.py"
    python, cuts = re.subn(r'(input="Why is the sky blue\?")', r"\1, max_output_tokens=25", snippets("python"))
    python, more = re.subn(r"(max_\w+_tokens)=\d+", r"\1=25", python)
    assert (cuts, more) == (1, 8)
    program.write_text(python.replace("127.0.0.1:8080", here), encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=450, check=False)
    assert done.returncode == 0, done.stderr
    assert "light" in done.stdout.lower()
    assert re.search(r"^(completed|incomplete)$", done.stdout, re.MULTILINE)
    assert done.stdout.count(" msg_") == 5
    (command,) = re.findall(r"curl .*?\}'", snippets("sh"), re.DOTALL)
    command = command.replace("127.0.0.1:8080", here).replace("}'", ', "max_output_tokens": 30}\'')
    curl = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=450, check=False)
    assert re.search(r'"status":"(completed|incomplete)"', curl.stdout), curl.stderr + curl.stdout
    assert '"output_text"' in curl.stdout


def test_sampling_parameters_have_their_effect(real_server: LiveServer) -> None:
    """A stop string cuts the same answer, a bias forces a token, a seed repeats a penalised answer, ids are checked."""
    create = real_server.client().responses.create
    asked: dict[str, Any] = {"model": "smollm2-135m", "input": "Name a colour.", "max_output_tokens": 8}
    whole = create(temperature=0, **asked).output_text
    stop = whole[3:7]
    cut = create(temperature=0, extra_body={"stop": stop}, **asked)
    assert (cut.output_text, cut.status) == (whole[: whole.index(stop)], "completed")
    forced = create(extra_body={"logit_bias": {"260": 100}}, **asked)
    assert forced.output_text == " the" * 8
    penalised = {"seed": 5, "top_k": 50, "min_p": 0.01, "frequency_penalty": 1, "repetition_penalty": 1.2}
    first, second = (create(extra_body=penalised, **asked).output_text for _ in range(2))
    assert first == second
    with pytest.raises(BadRequestError) as refused:
        create(extra_body={"logit_bias": {"49152": 1}}, **asked)
    assert refused.value.param == "logit_bias.49152"


def test_the_second_turn_reads_from_the_prefix_cache(real_server: LiveServer) -> None:
    """Greedy answers repeat word for word, and a chain's second turn finds the first one's tokens in the cache."""
    client = real_server.client()
    first = client.responses.create(model="smollm2-135m", input="Name a flower.", temperature=0, max_output_tokens=12)
    again = client.responses.create(model="smollm2-135m", input="Name a flower.", temperature=0, max_output_tokens=12)
    assert first.output_text == again.output_text
    second = client.responses.create(
        model="smollm2-135m", input="Another one.", previous_response_id=first.id, max_output_tokens=4
    )
    assert second.usage is not None
    assert first.usage is not None
    written = first.usage.input_tokens_details.cache_write_tokens
    assert written == first.usage.input_tokens - first.usage.input_tokens_details.cached_tokens
    assert second.usage.input_tokens_details.cached_tokens >= first.usage.input_tokens


@pytest.mark.parametrize(
    "options",
    [
        {"logprobs": True, "top_logprobs": 2},
        {"stop": "e"},
        {"response_format": FORMATS[1]},
        {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False},
    ],
    ids=["log-probabilities", "a stop", "a schema", "a tool"],
)
def test_chat_completions_equal_responses(real_server: LiveServer, options: dict[str, Any]) -> None:
    """Token for token, whole and streamed."""
    ask(real_server, user("Name a colour."), temperature=0, max_completion_tokens=24, **options)
