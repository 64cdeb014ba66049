"""The answer to any request is 200 or a 4xx with an envelope, and the server remains available."""

import json
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import hypothesis
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.live.server import LiveServer

from . import MODEL, SECONDS, TIMEOUT
from . import bodies as b

EXAMPLES = 100
"""Examples per round. Rounds are repeated until the time is over; there is at least one."""
ANSWER_SECONDS = 30
TERMINAL = {"response.completed", "response.incomplete", "response.failed"}
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True
)

StoredIds = dict[str, str]


@pytest.fixture
def http(server: LiveServer) -> Iterator[httpx.Client]:
    """A client; at the end the server must answer, and its log must have no unexpected errors."""
    root = server.url.removesuffix("/v1")
    with httpx.Client(base_url=root, headers=server.headers, timeout=ANSWER_SECONDS) as client:
        yield client
        assert client.post("/v1/responses", json={"input": "hello"}).json()["status"] == "completed"
    log = server.log.read_text()
    assert "Traceback" not in log
    assert "[error" not in log


@pytest.fixture
def stored_ids(http: httpx.Client) -> StoredIds:
    """Ids that exist on the server."""
    conversation = http.post("/v1/conversations", json={"items": [b.QUESTION]}).json()["id"]
    item = http.get(f"/v1/conversations/{conversation}/items").json()["data"][0]["id"]
    response = http.post("/v1/responses", json={"input": "hi"}).json()["id"]
    compacted = http.post("/v1/responses/compact", json={"model": MODEL, "input": "hi"}).json()["output"]
    blob = next(item["encrypted_content"] for item in compacted if item["type"] == "compaction")
    return {"conversation": conversation, "item": item, "response": response, "model": MODEL, "blob": blob}


def run_rounds(share: float, example: Callable[[st.DataObject], None]) -> None:
    """Repeat a Hypothesis test for its share of the time, with other examples in each round."""
    first = 0 if "CI" in os.environ else secrets.randbelow(2**32)
    deadline = time.monotonic() + SECONDS * share
    number = first
    while number == first or time.monotonic() < deadline:
        hypothesis.seed(number)(SETTINGS(given(st.data())(example)))()
        number += 1


def check_error(answer: httpx.Response) -> None:
    """Check that an answer is a 4xx with an envelope."""
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text)
    assert answer.headers["x-request-id"].startswith("req_")
    if answer.request.method == "HEAD":
        return
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["message"].endswith((".", "?")), body


def check_stream(answer: httpx.Response) -> dict[str, Any]:
    """Check that events are numbered and end with one terminal event and `[DONE]`. Returns the response."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, done = [line[6:] for line in answer.text.split("\n") if line.startswith("data: ")]
    assert done == "[DONE]"
    parsed = [json.loads(event) for event in events]
    assert [event["sequence_number"] for event in parsed] == list(range(len(parsed)))
    assert [event["type"] in TERMINAL for event in parsed] == [False] * (len(parsed) - 1) + [True]
    response: dict[str, Any] = parsed[-1]["response"]
    return response


def check_response(http: httpx.Client, answer: httpx.Response) -> None:
    """Check that a response has ended, and that the stored one equals the one that was sent."""
    stream = answer.headers["content-type"].startswith("text/event-stream")
    response = check_stream(answer) if stream else answer.json()
    assert response["status"] in ("completed", "incomplete"), response
    stored = http.get(f"/v1/responses/{response['id']}")
    if not response["store"]:
        assert stored.status_code == 404
        return
    assert stored.json() == response
    assert http.get(f"/v1/responses/{response['id']}/input_items?limit=100").status_code == 200


VALID_BODIES = {
    "/v1/responses": b.CREATE,
    "/v1/responses/input_tokens": b.COUNT,
    "/v1/responses/compact": b.COMPACT,
    "/v1/conversations": b.CONVERSATION,
    "/v1/conversations/conversation_here": b.UPDATE,
    "/v1/conversations/conversation_here/items": b.ADDITION,
}
PATHS = st.sampled_from(["/v1/responses"] * 4 + list(VALID_BODIES))


@pytest.mark.timeout(TIMEOUT)
def test_bodies(http: httpx.Client, stored_ids: StoredIds) -> None:
    """A valid body gets 200; any other body 200 or an error that explains itself."""
    statuses: Counter[str] = Counter()

    def send(path: str, content: bytes, kind: str, how: str) -> httpx.Response:
        headers = {"content-type": kind} if kind else {}
        answer = http.post(b.fill_in(path, stored_ids), content=content, headers=headers)
        statuses[f"{path} {how} {answer.status_code}"] += 1
        if answer.status_code != 200:
            check_error(answer)
        elif path == "/v1/responses":
            check_response(http, answer)
        else:
            assert answer.json()["object"]
        return answer

    def example(data: st.DataObject) -> None:
        path = data.draw(PATHS)
        how = data.draw(st.sampled_from(["valid", "mutated", "mutated", "broken"]))
        kind = data.draw(b.CONTENT_TYPES)
        if how == "broken":
            send(path, data.draw(b.broken(VALID_BODIES[path])), kind, how)
            return
        text = b.encode(data.draw(VALID_BODIES[path] if how == "valid" else b.mutated(VALID_BODIES[path])))
        ids = stored_ids
        if "conversation_here" in text:
            # A new one, as a conversation grows with each turn.
            ids = {**stored_ids, "conversation": http.post("/v1/conversations").json()["id"]}
        answer = send(path, b.fill_in(text, ids).encode(), kind, how)
        if how == "valid":
            assert answer.status_code == 200, answer.text

    run_rounds(0.3, example)
    print_statuses(statuses)
    assert any("valid 200" in name for name in statuses)
    assert any("mutated 400" in name for name in statuses)


@pytest.mark.timeout(TIMEOUT)
def test_targets(http: httpx.Client, stored_ids: StoredIds) -> None:
    """Ids, queries and methods of all kinds get 200 or an error."""
    statuses: Counter[str] = Counter()

    def example(data: st.DataObject) -> None:
        path = data.draw(b.PATHS)
        exists = data.draw(st.sampled_from([True, True, False]))
        ids = stored_ids if exists else dict.fromkeys(stored_ids, data.draw(b.UNKNOWN_IDS))
        method = data.draw(b.METHODS)
        if exists and method == "DELETE":
            ids = {**ids, "response": "resp_deleted", "conversation": "conv_deleted"}
        query = data.draw(b.QUERIES)
        content = data.draw(st.sampled_from([b"", b"", b"{}", b"[", b'{"input":"hi"}']))
        answer = http.request(method, f"{b.fill_in(path, ids)}?{query}", content=content)
        statuses[f"{method} {answer.status_code}"] += 1
        if answer.status_code == 200:
            assert answer.headers["x-request-id"]
        else:
            check_error(answer)

    run_rounds(0.2, example)
    print_statuses(statuses)
    assert statuses["GET 200"]
    assert any(name.endswith(" 404") for name in statuses)


def print_statuses(statuses: Counter[str]) -> None:
    """Print how often each status was seen."""
    print(f"{statuses.total()} requests")
    for name, count in sorted(statuses.items()):
        print(f"  {name:60} {count}")
