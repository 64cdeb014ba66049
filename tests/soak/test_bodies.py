"""Whatever is sent, the answer is 200 or a 4xx with an envelope, and the server goes on serving."""

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
"""In a round. Rounds follow each other until the time is over; there is at least one."""
ANSWER_SECONDS = 30
TERMINAL = {"response.completed", "response.incomplete", "response.failed"}
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True
)

Known = dict[str, str]


@pytest.fixture
def http(server: LiveServer) -> Iterator[httpx.Client]:
    """A client; at the end the server must answer, and must have met nothing that it did not foresee."""
    root = server.url.removesuffix("/v1")
    with httpx.Client(base_url=root, headers=server.headers, timeout=ANSWER_SECONDS) as client:
        yield client
        assert client.post("/v1/responses", json={"input": "still there?"}).json()["status"] == "completed"
    log = server.log.read_text()
    assert "Traceback" not in log
    assert "[error" not in log


@pytest.fixture
def known(http: httpx.Client) -> Known:
    """Ids that exist."""
    conversation = http.post("/v1/conversations", json={"items": [b.QUESTION]}).json()["id"]
    item = http.get(f"/v1/conversations/{conversation}/items").json()["data"][0]["id"]
    response = http.post("/v1/responses", json={"input": "hi"}).json()["id"]
    compacted = http.post("/v1/responses/compact", json={"model": MODEL, "input": "hi"}).json()["output"]
    blob = next(item["encrypted_content"] for item in compacted if item["type"] == "compaction")
    return {"conversation": conversation, "item": item, "response": response, "model": MODEL, "blob": blob}


def rounds(share: float, example: Callable[[st.DataObject], None]) -> None:
    """Run a Hypothesis test again and again, each time with other examples, for its share of the time."""
    first = 0 if "CI" in os.environ else secrets.randbelow(2**32)
    deadline = time.monotonic() + SECONDS * share
    number = first
    while number == first or time.monotonic() < deadline:
        hypothesis.seed(number)(SETTINGS(given(st.data())(example)))()
        number += 1


def check_fault(answer: httpx.Response) -> None:
    """A 4xx with an envelope."""
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
    """Its events are numbered, and end with one terminal event and `[DONE]`; the response that came out."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, done = [line[6:] for line in answer.text.split("\n") if line.startswith("data: ")]
    assert done == "[DONE]"
    parsed = [json.loads(event) for event in events]
    assert [event["sequence_number"] for event in parsed] == list(range(len(parsed)))
    assert [event["type"] in TERMINAL for event in parsed] == [False] * (len(parsed) - 1) + [True]
    response: dict[str, Any] = parsed[-1]["response"]
    return response


def check_response(http: httpx.Client, answer: httpx.Response) -> None:
    """It has ended, and what is stored is what was sent."""
    stream = answer.headers["content-type"].startswith("text/event-stream")
    response = check_stream(answer) if stream else answer.json()
    assert response["status"] in ("completed", "incomplete"), response
    stored = http.get(f"/v1/responses/{response['id']}")
    if not response["store"]:
        assert stored.status_code == 404
        return
    assert stored.json() == response
    assert http.get(f"/v1/responses/{response['id']}/input_items?limit=100").status_code == 200


VALID = {
    "/v1/responses": b.CREATE,
    "/v1/responses/input_tokens": b.COUNT,
    "/v1/responses/compact": b.COMPACT,
    "/v1/conversations": b.CONVERSATION,
    "/v1/conversations/conversation_here": b.UPDATE,
    "/v1/conversations/conversation_here/items": b.ADDITION,
}
PATHS = st.sampled_from(["/v1/responses"] * 4 + list(VALID))


@pytest.mark.timeout(TIMEOUT)
def test_bodies(http: httpx.Client, known: Known) -> None:
    """A valid body is answered; any other is, or is told what is wrong with it."""
    seen: Counter[str] = Counter()

    def send(path: str, content: bytes, kind: str, how: str) -> httpx.Response:
        headers = {"content-type": kind} if kind else {}
        answer = http.post(b.placed(path, known), content=content, headers=headers)
        seen[f"{path} {how} {answer.status_code}"] += 1
        if answer.status_code != 200:
            check_fault(answer)
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
            send(path, data.draw(b.broken(VALID[path])), kind, how)
            return
        text = b.encoded(data.draw(VALID[path] if how == "valid" else b.mutated(VALID[path])))
        fresh = known
        if "conversation_here" in text:
            # Of its own, for with every turn one grows.
            fresh = {**known, "conversation": http.post("/v1/conversations").json()["id"]}
        answer = send(path, b.placed(text, fresh).encode(), kind, how)
        if how == "valid":
            assert answer.status_code == 200, answer.text

    rounds(0.3, example)
    show(seen)
    assert any("valid 200" in name for name in seen)
    assert any("mutated 400" in name for name in seen)


@pytest.mark.timeout(TIMEOUT)
def test_addresses(http: httpx.Client, known: Known) -> None:
    """Ids, queries and methods of all kinds."""
    seen: Counter[str] = Counter()

    def example(data: st.DataObject) -> None:
        path = data.draw(b.PATHS)
        exists = data.draw(st.sampled_from([True, True, False]))
        ids = known if exists else dict.fromkeys(known, data.draw(b.UNKNOWN_IDS))
        method = data.draw(b.METHODS)
        if exists and method == "DELETE":
            ids = {**ids, "response": "resp_deleted", "conversation": "conv_deleted"}
        query = data.draw(b.QUERIES)
        content = data.draw(st.sampled_from([b"", b"", b"{}", b"[", b'{"input":"hi"}']))
        answer = http.request(method, f"{b.placed(path, ids)}?{query}", content=content)
        seen[f"{method} {answer.status_code}"] += 1
        if answer.status_code == 200:
            assert answer.headers["x-request-id"]
        else:
            check_fault(answer)

    rounds(0.2, example)
    show(seen)
    assert seen["GET 200"]
    assert any(name.endswith(" 404") for name in seen)


def show(seen: Counter[str]) -> None:
    """Print the figures."""
    print(f"{seen.total()} requests")
    for name, count in sorted(seen.items()):
        print(f"  {name:60} {count}")
