"""The Conversations API through the real SDK, in both shapes."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from tests.live.server import LiveServer

JSON = {"content-type": "application/json"}
MODEL = "smollm2-135m"
TURNS = int(os.environ.get("SOAK_TURNS", "100"))
AT_ONCE = 8
EDITS = 6


def message(text: str) -> Any:
    """A user's message."""
    return {"type": "message", "role": "user", "content": text}


def text(item: Any) -> str:
    """The text of a message with one part."""
    part = item["content"][0] if isinstance(item, dict) else item.content[0]
    return str(part["text"] if isinstance(part, dict) else part.text)


def texts(client: OpenAI, conversation_id: str) -> list[str]:
    """The texts of all items of a conversation, oldest first, page by page."""
    return [text(item) for item in client.conversations.items.list(conversation_id, order="asc", limit=100)]


def test_a_conversation_from_its_creation_to_its_end(server: LiveServer) -> None:
    """Create, retrieve, update, delete; every web process sees each change at once."""
    client, other = server.client(), server.client(web=server.web - 1)
    made = client.conversations.create(items=[message("hello")], metadata={"topic": "greeting"})
    assert made.id.startswith("conv_")
    assert made.object == "conversation"
    assert made.metadata == {"topic": "greeting"}
    assert other.conversations.retrieve(made.id) == made
    changed = other.conversations.update(made.id, metadata={"topic": "other"})
    assert changed.metadata == {"topic": "other"}
    assert client.conversations.retrieve(made.id) == changed
    gone = client.conversations.delete(made.id)
    assert (gone.id, gone.object, gone.deleted) == (made.id, "conversation.deleted", True)
    with pytest.raises(NotFoundError) as error:
        other.conversations.retrieve(made.id)
    assert error.value.code == "not_found"


def test_items_are_added_listed_read_and_deleted(server: LiveServer) -> None:
    """Twenty at a time; the SDK pages through them; a single item equals the listed one."""
    client = server.client()
    conversation = client.conversations.create()
    added = client.conversations.items.create(conversation.id, items=[message(str(number)) for number in range(20)])
    assert len(added.data) == 20
    assert added.has_more is False
    client.conversations.items.create(conversation.id, items=[message(str(number)) for number in range(20, 30)])
    newest_first = list(client.conversations.items.list(conversation.id, limit=7))
    assert [text(item) for item in newest_first] == [str(number) for number in reversed(range(30))]
    assert len({item.id for item in newest_first}) == 30
    item_id = str(added.data[3].id)
    assert client.conversations.items.retrieve(item_id, conversation_id=conversation.id) == added.data[3]
    after = client.conversations.items.delete(item_id, conversation_id=conversation.id)
    assert after == conversation
    assert texts(client, conversation.id) == [str(number) for number in range(30) if number != 3]
    with pytest.raises(NotFoundError):
        client.conversations.items.retrieve(item_id, conversation_id=conversation.id)
    with pytest.raises(BadRequestError) as error:
        client.conversations.items.create(conversation.id, items=[message("x")] * 21)
    assert error.value.param == "items"


def test_turns_go_into_the_conversation(server: LiveServer) -> None:
    """A turn streamed and one not; the next reads them; a later deletion changes no response."""
    client = server.client()
    conversation = client.conversations.create(items=[message("my name is Ada")])
    first = client.responses.create(model=MODEL, input="one", conversation=conversation.id)
    assert first.conversation is not None
    assert first.conversation.id == conversation.id
    with client.responses.stream(model=MODEL, input="two", conversation={"id": conversation.id}) as stream:
        second = stream.get_final_response()
    expected = ["my name is Ada", "one", "You said: one", "two", "You said: two"]
    assert texts(server.client(web=server.web - 1), conversation.id) == expected
    prompt = client.responses.create(model=MODEL, input="[[show-prompt]]", conversation=conversation.id).output_text
    assert all(part in prompt for part in expected)
    oldest = next(iter(client.conversations.items.list(conversation.id, order="asc")))
    client.conversations.items.delete(str(oldest.id), conversation_id=conversation.id)
    assert len(texts(client, conversation.id)) == 6
    read = [text(item) for item in client.responses.input_items.list(second.id, order="asc")]
    assert read == expected[:-1]
    client.conversations.delete(conversation.id)
    assert client.responses.retrieve(second.id).output_text == "You said: two"


def test_invalid_conversations_of_a_request(server: LiveServer) -> None:
    """An unknown conversation is 404; one with a previous response is 400, for streams too."""
    client = server.client()
    for stream in (False, True):
        with pytest.raises(NotFoundError) as missing:
            client.responses.create(model=MODEL, input="x", conversation="conv_unknown", stream=stream)
        assert missing.value.param == "conversation"
    with pytest.raises(BadRequestError) as both:
        client.responses.create(model=MODEL, input="x", conversation="conv_x", previous_response_id="resp_x")
    assert both.value.param == "conversation"


def test_every_route_answers_without_the_version_too(server: LiveServer) -> None:
    """And without a body where none is needed. A body that is not JSON is 400, another method 405."""
    root = server.url.removesuffix("/v1")
    with server.http() as http:
        made = http.post(f"{root}/conversations").json()
        assert made["metadata"] == {}
        here = f"{root}/conversations/{made['id']}"
        assert http.get(here).json() == made
        added = http.post(f"{here}/items", json={"items": [message("x")]}).json()
        item = added["data"][0]
        assert http.get(f"{here}/items/{item['id']}?include[]=message.input_image.image_url").json() == item
        assert http.get(f"{here}/items").json() == added
        assert http.post(here, json={}).json()["error"]["param"] == "metadata"
        assert http.post(here, content=b"{", headers=JSON).json()["error"]["code"] == "invalid_json"
        assert http.put(here, json={}).status_code == 405
        assert http.delete(f"{here}?force=true").status_code == 400
        assert http.delete(f"{here}/items/{item['id']}").json() == made
        assert http.delete(here).json() == {"id": made["id"], "object": "conversation.deleted", "deleted": True}
        assert http.get(f"{here}/items").status_code == 404


def test_concurrent_turns_are_all_complete(server: LiveServer) -> None:
    """Eight at a time on one conversation: none is lost, duplicated or split, and no response's history changes.

    `SOAK_TURNS` sets another number of turns.
    """
    conversation_id = server.client().conversations.create(items=[message("begin")]).id

    with ExitStack() as stack:
        clients = [stack.enter_context(server.http(web=web)) for web in range(server.web)]

        def turn(number: int) -> tuple[str, list[Any]]:
            http = clients[number % server.web]
            asked = {"model": MODEL, "input": f"turn {number}", "conversation": conversation_id}
            response = http.post(f"{server.urls[number % server.web]}/responses", json=asked).json()
            assert text(response["output"][0]) == f"You said: turn {number}"
            return response["id"], read(response["id"])

        def read(response_id: str) -> list[Any]:
            """The first page of a response's history, from its newest item."""
            found = clients[0].get(f"{server.url}/responses/{response_id}/input_items?limit=100").json()
            return list(found["data"])

        with ThreadPoolExecutor(AT_ONCE) as threads:
            ended = list(threads.map(turn, range(TURNS)))
        found = texts(server.client(), conversation_id)
        assert found[0] == "begin"
        pairs = list(zip(found[1::2], found[2::2], strict=True))
        assert sorted(pairs) == sorted((f"turn {n}", f"You said: turn {n}") for n in range(TURNS))
        for response_id, history in ended:
            assert read(response_id) == history
            # Newest first: its own input, then turns of two.
            for answer, question in zip(history[1::2], history[2::2], strict=False):
                assert text(answer) == f"You said: {text(question)}"


def test_turns_and_edits_at_once(server: LiveServer) -> None:
    """While items are added and deleted, no turn is lost and no deleted item comes back."""
    conversation_id = server.client().conversations.create(items=[message("begin")]).id

    def rounds(worker: int) -> None:
        with server.http(web=worker % server.web) as http:
            root = server.urls[worker % server.web]
            items = f"{root}/conversations/{conversation_id}/items"
            for number in range(EDITS):
                asked = {"model": MODEL, "input": f"turn {worker} {number}", "conversation": conversation_id}
                assert http.post(f"{root}/responses", json=asked).status_code == 200
                added = http.post(items, json={"items": [message("kept"), message("deleted")]}).json()
                assert http.delete(f"{items}/{added['data'][1]['id']}").status_code == 200

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(rounds, range(AT_ONCE)))
    found = texts(server.client(), conversation_id)
    asked = [f"turn {worker} {number}" for worker in range(AT_ONCE) for number in range(EDITS)]
    expected = ["begin", *asked, *(f"You said: {question}" for question in asked), *["kept"] * len(asked)]
    assert sorted(found) == sorted(expected)
    for question in asked:
        assert found[found.index(question) + 1] == f"You said: {question}"


def test_a_conversation_is_deleted_under_running_turns(server: LiveServer) -> None:
    """They end as usual or get a 404; nothing fails."""
    with ExitStack() as stack:
        clients = [stack.enter_context(server.http(web=web)) for web in range(server.web)]

        def turn(number: int, conversation_id: str) -> int:
            asked = {"model": MODEL, "input": f"turn {number}", "conversation": conversation_id}
            web = number % server.web
            return clients[web].post(f"{server.urls[web]}/responses", json=asked).status_code

        with ThreadPoolExecutor(AT_ONCE) as threads:
            for _ in range(20):
                conversation_id = server.client().conversations.create(items=[message("begin")]).id
                turns = [threads.submit(turn, number, conversation_id) for number in range(AT_ONCE)]
                turns[0].result()
                server.client().conversations.delete(conversation_id)
                assert {turn.result() for turn in turns} <= {200, 404}
    assert "deadlock" not in server.log.read_text()
