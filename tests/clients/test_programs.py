"""Third-party clients, run as programs against a live server.

Their tests are in `checks/` and `node/`, and all of them run with scripted answers. Tests with "stored" in their name
hold for any answer, and run with the default model too.
"""

import re
from pathlib import Path

import pytest

from tests.live.server import LiveServer

from .environment import Clients

HERE = Path(__file__).parent
FOR_ANY_ANSWER = "stored"

# The first test installs the clients.
pytestmark = pytest.mark.timeout(1000)


@pytest.mark.parametrize("client", ["agents", "langchain", "pydantic_ai"])
def test_python(clients: Clients, scripted: LiveServer, client: str) -> None:
    """openai-agents, langchain-openai and pydantic-ai."""
    output = clients.pytest(sorted((HERE / "checks").glob(f"{client}_*.py")), scripted.url)
    assert re.search(r"\d passed", output)


@pytest.mark.parametrize("checks", ["vercel.test.mjs", "vercel_tools.test.mjs", "openai.test.mjs"])
def test_node(clients: Clients, scripted: LiveServer, checks: str) -> None:
    """Vercel's AI SDK and openai-node."""
    output = clients.node_test(HERE / "node" / checks, scripted.url)
    assert re.search(r"pass \d\d", output)


@pytest.mark.real_model
def test_with_a_real_model(clients: Clients, real: LiveServer) -> None:
    """The tests that hold for any answer."""
    for checks in ("agents_sdk.py", "langchain_chat.py"):
        assert re.search(r"[1-9] passed", clients.pytest([HERE / "checks" / checks], real.url, FOR_ANY_ANSWER))
    assert re.search(r"pass [2-9]", clients.node_test(HERE / "node" / "vercel.test.mjs", real.url, FOR_ANY_ANSWER))
