"""Requests of real clients, sent over HTTP as they send them, streamed and not.

`client_bodies.json` has those that `tests/protocol` does not use. Text that was not captured has a placeholder with its
length, which is filled in here.
"""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.server import LiveServer
from tests.schemas import CODEX_PATCH

MODEL = "smollm2-135m"
HERE = Path(__file__).parent
BODIES: dict[str, Any] = {
    name: captured["body"]
    for file in (HERE.parents[1] / "protocol" / "client_bodies.json", HERE / "client_bodies.json")
    for name, captured in json.loads(file.read_text()).items()
}
PLACEHOLDER = re.compile(r"<(?P<what>[\w-]+) of (?P<length>\d+) characters>")
WORDS = "All of this is told in other words. "
HEADERS = {
    "codex": {"accept": "text/event-stream", "accept-encoding": "zstd,gzip", "originator": "codex_exec"},
    "litellm": {"accept": "*/*", "accept-encoding": "gzip, deflate, zstd"},
    "vercel": {"accept": "*/*", "accept-encoding": "gzip, deflate"},
}
SDK_HEADERS = {"accept": "application/json", "accept-encoding": "gzip, deflate", "x-stainless-retry-count": "0"}


def filled(value: Any, previous: str) -> Any:
    """A captured value with text in place of its placeholders."""
    if isinstance(value, dict):
        return {name: filled(inner, previous) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, previous) for inner in value]
    if not isinstance(value, str) or not (match := PLACEHOLDER.fullmatch(value)):
        return value
    length = int(match["length"])
    known = {"definition": CODEX_PATCH, "previous_response_id": previous}
    text = known.get(match["what"]) or (WORDS * (length // len(WORDS) + 1))[:length]
    assert len(text) == length
    return text


def answer(http: httpx.Client, name: str, body: Any) -> Any:
    """The response object that the client gets."""
    headers = HEADERS.get(name.split("-")[0], SDK_HEADERS)
    got = http.post("/responses", json=body, headers=headers)
    assert got.status_code == 200, got.text
    if not body.get("stream"):
        assert got.headers["content-type"].startswith("application/json")
        return got.json()
    assert got.headers["content-type"].startswith("text/event-stream")
    *events, last = got.text.strip().split("\n\n")
    assert last == "data: [DONE]"
    shown = [json.loads(event.partition("\ndata: ")[2]) for event in events]
    assert [event["sequence_number"] for event in shown] == list(range(len(shown)))
    assert shown[-1]["type"] == "response.completed", shown[-1]
    return shown[-1]["response"]


def content(response: Any) -> list[Any]:
    """The content of an answer, without ids."""
    hidden = ("id", "call_id", "encrypted_content")
    return [{name: value for name, value in item.items() if name not in hidden} for item in response["output"]]


@pytest.mark.parametrize("name", sorted(BODIES))
def test_a_client_s_request_is_answered(server: LiveServer, name: str) -> None:
    """Completed, with the model's text; streamed and whole, the answer and its usage are the same."""
    with server.http() as http:
        previous = http.post("/responses", json={"model": MODEL, "input": "Good morning!"}).json()["id"]
        body = {**filled(BODIES[name], previous), "model": MODEL}
        response = answer(http, name, body)
        assert response["status"] == "completed"
        assert response["output"]
        other = answer(http, name, {**body, "stream": not body.get("stream")})
    assert content(other) == content(response)
    assert other["usage"] == response["usage"]
    assert len(response["tools"]) == len(body.get("tools", []))
    form = body.get("text", {}).get("format", {}).get("type")
    text = "".join(part["text"] for item in response["output"] for part in item["content"])
    if form == "json_schema":
        assert isinstance(json.loads(text), dict)
    else:
        assert text.startswith("You said: ")


def test_a_session_of_openai_agents_starts(server: LiveServer) -> None:
    """With an empty conversation, whose items it lists."""
    with server.http() as http:
        made = http.post("/conversations", json={"items": []}, headers=SDK_HEADERS).json()
        listed = http.get(f"/conversations/{made['id']}/items", params={"order": "asc"}, headers=SDK_HEADERS).json()
    assert (made["object"], listed["data"], listed["has_more"]) == ("conversation", [], False)
