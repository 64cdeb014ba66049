"""Responses through the real SDK, in both shapes."""

import pytest
from openai import APIStatusError, BadRequestError, NotFoundError

from tests.live.server import LiveServer


def test_an_answer_comes_back_whole(server: LiveServer) -> None:
    """A create returns the finished object with text and correct counts."""
    response = server.client().responses.create(model="smollm2-135m", input="hello there")
    assert response.output_text == "You said: hello there"
    assert response.status == "completed"
    assert response.usage is not None
    assert response.usage.output_tokens == 4
    assert response.usage.total_tokens == response.usage.input_tokens + 4


def test_a_stream_folds_to_the_stored_object(server: LiveServer) -> None:
    """The stream helper's final response is what GET returns, on the other web process too."""
    client = server.client()
    with client.responses.stream(model="smollm2-135m", input="one two three") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    stored = server.client(web=server.web - 1).responses.retrieve(final.id)
    assert stored.output_text == final.output_text == "You said: one two three"
    for item in (parsed := final.to_dict())["output"]:  # type: ignore[attr-defined]
        for part in item["content"]:
            part.pop("parsed", None)  # the helper's own
    assert stored.to_dict() == parsed


def test_three_turns_share_their_history(server: LiveServer) -> None:
    """The third turn's prompt has the first two, and only its own instructions."""
    client = server.client()
    first = client.responses.create(input="my name is Ada", instructions="Be brief.", model="smollm2-135m")
    second = client.responses.create(
        input=[{"role": "developer", "content": "Speak kindly."}, {"role": "user", "content": "and I like sums"}],
        previous_response_id=first.id,
        model="smollm2-135m",
    )
    third = server.client(web=server.web - 1).responses.create(
        input="[[show-prompt]]", instructions="Answer in rhyme.", previous_response_id=second.id, model="smollm2-135m"
    )
    prompt = third.output_text
    for text in ("my name is Ada", "You said: my name is Ada", "Speak kindly.", "and I like sums", "Answer in rhyme."):
        assert text in prompt
    assert "Be brief." not in prompt
    assert prompt.index("my name is Ada") < prompt.index("and I like sums")


def test_input_items_page_through_the_whole_input(server: LiveServer) -> None:
    """The input of all turns and all earlier output, in stable order, without the response's own output."""
    client = server.client()
    previous = None
    for turn in range(4):
        response = client.responses.create(input=f"turn {turn}", previous_response_id=previous, model="smollm2-135m")
        previous = response.id
    assert previous is not None
    down = [item.id for item in client.responses.input_items.list(previous, limit=2)]
    up = [item.id for item in client.responses.input_items.list(previous, order="asc", limit=3)]
    assert down == up[::-1]
    assert len(set(up)) == 7
    listed = client.responses.input_items.list(previous, order="asc")
    texts = [item.to_dict()["content"][0]["text"] for item in listed]  # type: ignore[index]
    assert texts[0] == "turn 0"
    assert texts[1] == "You said: turn 0"
    assert texts[-1] == "turn 3"


def test_deleting_a_response_leaves_its_descendants_whole(server: LiveServer) -> None:
    """After DELETE the id is unknown everywhere, and a response that continued it still has its history."""
    client = server.client()
    first = client.responses.create(input="remember 73", model="smollm2-135m")
    second = client.responses.create(input="go on", previous_response_id=first.id, model="smollm2-135m")
    client.responses.delete(first.id)
    with pytest.raises(NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(NotFoundError):
        client.responses.delete(first.id)
    with pytest.raises(BadRequestError) as refused:
        client.responses.create(input="again", previous_response_id=first.id, model="smollm2-135m")
    assert refused.value.code == "previous_response_not_found"
    third = client.responses.create(input="[[show-prompt]]", previous_response_id=second.id, model="smollm2-135m")
    assert "remember 73" in third.output_text


def test_an_unstored_response_is_not_stored(server: LiveServer) -> None:
    """`store: false` answers, and no id can be read afterwards."""
    client = server.client()
    response = client.responses.create(input="secret", store=False, model="smollm2-135m")
    assert response.output_text == "You said: secret"
    with pytest.raises(NotFoundError):
        client.responses.retrieve(response.id)
    with pytest.raises(BadRequestError):
        client.responses.create(input="go on", previous_response_id=response.id, model="smollm2-135m")


def test_the_output_limit_cuts_an_answer(server: LiveServer) -> None:
    """Response, open item and terminal event are all incomplete; the cut response is stored and can be continued."""
    client = server.client()
    response = client.responses.create(input="a b c d e f", max_output_tokens=3, model="smollm2-135m")
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output[0].status == "incomplete"  # type: ignore[union-attr]
    assert response.usage is not None
    assert response.usage.output_tokens == 3
    events = list(client.responses.create(input="a b c d e", max_output_tokens=2, model="smollm2-135m", stream=True))
    assert events[-1].type == "response.incomplete"
    assert client.responses.create(input="more", previous_response_id=response.id, model="smollm2-135m").output_text


def test_a_chained_request_finds_its_parent_at_once(server: LiveServer) -> None:
    """A request sent on receipt of the terminal event finds what it continues, on any web process."""
    clients = [server.client(web=index) for index in range(server.web)]
    previous = None
    for turn in range(10):
        client = clients[turn % len(clients)]
        with client.responses.stream(input="again", model="smollm2-135m", previous_response_id=previous) as stream:
            for event in stream:
                if event.type == "response.completed":
                    previous = event.response.id
    assert previous is not None


def test_characters_are_never_split(server: LiveServer) -> None:
    """Emoji and Japanese arrive whole in every delta."""
    text = "日本語のテスト 👩‍👩‍👧‍👦 naïve"
    deltas = [
        event.delta
        for event in server.client().responses.create(input=text, model="smollm2-135m", stream=True)
        if event.type == "response.output_text.delta"
    ]
    assert "".join(deltas) == f"You said: {text}"
    assert not any("�" in delta for delta in deltas)


def test_an_engine_error_is_reported_and_nothing_is_stored(server: LiveServer) -> None:
    """A stream gets `error` and `response.failed`, JSON a 500; the server keeps serving."""
    client = server.client()
    events = list(client.responses.create(input="[[fail: It is broken.]]", model="smollm2-135m", stream=True))
    assert [event.type for event in events[-2:]] == ["error", "response.failed"]
    assert events[-2].message == "It is broken."  # type: ignore[union-attr]
    failed_id = events[-1].response.id  # type: ignore[union-attr]
    with pytest.raises(NotFoundError):
        client.responses.retrieve(failed_id)
    with pytest.raises(APIStatusError) as error:
        client.responses.create(input="[[fail: broken]]", model="smollm2-135m")
    assert error.value.status_code == 500
    assert client.responses.create(input="fine", model="smollm2-135m").output_text == "You said: fine"


def test_models_are_listed_with_their_aliases(server: LiveServer) -> None:
    """Every listed name can be used."""
    client = server.client()
    names = [model.id for model in client.models.list()]
    assert "smollm2-135m" in names
    for name in names:
        assert client.models.retrieve(name).id == name
        assert client.responses.create(input="hi", model=name).status == "completed"
    with pytest.raises(NotFoundError):
        client.models.retrieve("no-such-model")
