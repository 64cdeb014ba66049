"""Codex, OpenAI's command-line agent, run as its users run it, with this server as its provider.

The prompts contain directives for the scripted model, and so do the outputs of tools: each makes the model call the
next tool. A JSON escape keeps one directive from ending within another.
"""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.live.launch import Launch
from tests.live.server import LiveServer

from .environment import Clients

pytestmark = pytest.mark.timeout(1000)  # the first test installs the clients

KNOWN = "gpt-5.5"
"""A name for which Codex declares `apply_patch`, as a custom tool with a grammar. For others it declares namespaces."""
CONFIG = """
model_provider = "here"
check_for_update_on_startup = false
[model_providers.here]
name = "here"
base_url = "{url}"
env_key = "HERE_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[feedback]
enabled = false
"""


@pytest.fixture(scope="module")
def known(launch: Launch) -> Any:
    """A server whose model has a name that Codex knows."""
    with launch("embedded", RESPONSES_DEFAULT_MODEL=KNOWN) as server:
        yield server


def call(name: str, arguments: Any) -> str:
    """The directive for a call, without its end marker inside."""
    return f"[[call: {name} {json.dumps(arguments).replace(']]', ']' + chr(92) + 'u005d')}]]"


def run_of(text: str) -> str:
    """The directive that makes Codex run a command that prints this text."""
    return call("exec_command", {"cmd": f"printf %s {shlex.quote(text)}"})


def codex(clients: Clients, server: LiveServer, directory: Path, *, model: str, prompt: str) -> tuple[str, str]:
    """Run Codex in a directory. Returns its last message and its output. It must end with status 0."""
    home, last = directory / "home", directory / "last.txt"
    home.mkdir()
    (directory / "work").mkdir()
    (home / "config.toml").write_text(CONFIG.format(url=server.url))
    options = ["--strict-config", "--skip-git-repo-check", "--ephemeral", "--color", "never", "-m", model]
    options += ["--dangerously-bypass-approvals-and-sandbox", "-C", str(directory / "work"), "-o", str(last)]
    output = clients.run(
        [clients.node, clients.codex, "exec", *options, prompt],
        HOME=str(home),
        CODEX_HOME=str(home),
        HERE_KEY="any",
        NO_PROXY="127.0.0.1",
    )
    return last.read_text(), output


def test_a_command_and_a_patch(clients: Clients, known: LiveServer, tmp_path: Path) -> None:
    """It thinks, runs a command, applies a patch, and reports the result."""
    lines = ["It is cold.", 'A "quoted" line, and a \\ in it.']
    added = "".join(f"+{line}\n" for line in lines)
    patch = f"*** Begin Patch\n*** Add File: notes.txt\n{added}*** End Patch\n"
    prompt = "[[think: First I look.]][[say: I look around.]]" + run_of(call("apply_patch", {"input": patch}))
    last, output = codex(clients, known, tmp_path, model=KNOWN, prompt=prompt)
    assert (tmp_path / "work" / "notes.txt").read_text().splitlines() == lines
    assert last.startswith("You said: ")
    assert "Success. Updated the following files:\nA notes.txt" in last
    assert "I look around." in output
    assert "ERROR" not in output


def test_three_commands_and_a_tool_of_a_namespace(clients: Clients, scripted: LiveServer, tmp_path: Path) -> None:
    """The last tool reports that it doesn't find the agent, with the name, a directive for the last message."""
    namespaced = call("multi_agent_v1::close_agent", {"target": "[[say: Nobody is there.]]"})
    two = call("exec_command", {"cmd": "echo one > one.txt"}) + run_of(namespaced)
    last, output = codex(clients, scripted, tmp_path, model="smollm2-135m", prompt=run_of(two))
    assert last == "Nobody is there."
    assert (tmp_path / "work" / "one.txt").read_text() == "one\n"
    assert "invalid agent id" in output
