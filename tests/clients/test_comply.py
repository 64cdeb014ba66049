"""PyPI's llm-comply, which checks a server against Open Responses."""

import json
from typing import Any

import pytest

from tests.live.server import LiveServer

from .environment import Clients

pytestmark = pytest.mark.timeout(1000)  # the first test installs the clients

NOT_FOR_THIS_SERVER = {
    "image-input": "sends an image, and no model here has vision",
    "reasoning-summary": "asks for a summary of reasoning; it runs for OpenAI's models only, and none is invented here",
    "error-handling": "sends no `model` and wants an error, but OpenAI lets it be absent, and the server has a default",
}


def test_llm_comply(clients: Clients, scripted: LiveServer) -> None:
    """All of its tests pass except those named here; unsupported input is refused with 400."""
    arguments = ["-u", scripted.url, "-k", "any", "-m", "smollm2-135m", "--json"]
    output = clients.run([clients.python, "-m", "llm_comply.cli", *arguments], statuses=(0, 1))
    results: dict[str, Any] = {result["id"]: result for result in json.loads(output[output.index("{") :])["results"]}
    assert len(results) == 13
    failed = {name: result["errors"] for name, result in results.items() if result["status"] != "passed"}
    assert set(failed) == set(NOT_FOR_THIS_SERVER), failed
    assert not any(result.get("warnings") for result in results.values()), output
    assert "HTTP 400 (expected [200])" in failed["image-input"]
