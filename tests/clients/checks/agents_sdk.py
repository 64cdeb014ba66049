"""openai-agents against a live server, whose address is in BASE_URL."""

import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIConversationsSession,
    OpenAIResponsesCompactionSession,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    set_tracing_disabled,
)
from openai import AsyncOpenAI, BadRequestError, NotFoundError

MODEL = "smollm2-135m"
FRANCE, ITALY = "What is the capital of France?", "What is the capital of Italy?"

set_tracing_disabled(True)


@pytest.fixture
async def client() -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key="any", max_retries=0, timeout=120) as client:
        yield client


@pytest.fixture
def session(client: AsyncOpenAI) -> OpenAIConversationsSession:
    return OpenAIConversationsSession(openai_client=client)


def agent(client: AsyncOpenAI, *, model: str = MODEL) -> Any:
    """An agent without tools and with fixed instructions."""
    settings = ModelSettings(temperature=0)
    model_here = OpenAIResponsesModel(model=model, openai_client=client)
    return Agent(name="Keeper", instructions="You keep a lighthouse.", model=model_here, model_settings=settings)


def text(item: Any) -> str:
    """The text of a listed message."""
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def said(content: str) -> Any:
    """A user's message."""
    return {"role": "user", "content": content}


async def test_a_run_whole(client: AsyncOpenAI) -> None:
    """The final output, the counts and the item ids are those of the stored response, which shows the instructions."""
    result = await Runner.run(agent(client), FRANCE)
    (raw,) = result.raw_responses
    stored = await client.responses.retrieve(str(result.last_response_id))
    assert result.final_output
    assert stored.output_text == result.final_output
    assert [item.id for item in stored.output] == [item.id for item in raw.output]
    assert stored.instructions == "You keep a lighthouse."
    assert stored.usage is not None
    assert (raw.usage.input_tokens, raw.usage.output_tokens) == (stored.usage.input_tokens, stored.usage.output_tokens)


async def test_a_streamed_run_is_what_is_stored(client: AsyncOpenAI) -> None:
    """The deltas concatenate to the final output and to the stored text."""
    result = Runner.run_streamed(agent(client), FRANCE)
    deltas = [
        event.data.delta
        async for event in result.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    stored = await client.responses.retrieve(str(result.last_response_id))
    assert stored.output_text
    assert "".join(deltas) == result.final_output == stored.output_text


async def test_a_streamed_run_comes_bit_by_bit(client: AsyncOpenAI) -> None:
    """Slow tokens come one by one."""
    result = Runner.run_streamed(agent(client), "[[slow: 0.05]] [[say: one two three]]")
    kinds = [event.data.type async for event in result.stream_events() if event.type == "raw_response_event"]
    assert kinds.count("response.output_text.delta") == 3


async def test_turns_are_chained_by_previous_response_id(client: AsyncOpenAI) -> None:
    """Each run names the one before, and the inputs of the last are all turns."""
    keeper = agent(client)
    first = await Runner.run(keeper, "My name is Ada.")
    second = await Runner.run(keeper, "I like sums.", previous_response_id=first.last_response_id)
    third = Runner.run_streamed(keeper, "And rhymes.", previous_response_id=second.last_response_id)
    async for _ in third.stream_events():
        pass
    stored = await client.responses.retrieve(str(third.last_response_id))
    assert stored.previous_response_id == second.last_response_id
    listed = [text(item.to_dict()) async for item in client.responses.input_items.list(stored.id, order="asc", limit=2)]
    assert listed == ["My name is Ada.", first.final_output, "I like sums.", second.final_output, "And rhymes."]


async def test_the_model_sees_the_chain(client: AsyncOpenAI) -> None:
    """The prompt holds the earlier turns, and the instructions once."""
    keeper = agent(client)
    first = await Runner.run(keeper, "My name is Ada.")
    prompt = (await Runner.run(keeper, "[[show-prompt]]", previous_response_id=first.last_response_id)).final_output
    assert prompt.index("My name is Ada.") < prompt.index("You said: My name is Ada.")
    assert prompt.count("You keep a lighthouse.") == 1


async def test_a_session_is_stored(client: AsyncOpenAI, session: OpenAIConversationsSession) -> None:
    """Two turns, one of them streamed, are four items of a stored conversation, in order."""
    keeper = agent(client)
    first = await Runner.run(keeper, FRANCE, session=session)
    second = Runner.run_streamed(keeper, ITALY, session=session)
    async for _ in second.stream_events():
        pass
    items = await session.get_items()
    expected = [FRANCE, first.final_output, ITALY, second.final_output]
    assert [text(item) for item in items] == expected
    conversation = await client.conversations.retrieve(session.session_id)
    assert conversation.id == session.session_id
    listed = [item.id async for item in client.conversations.items.list(conversation.id, order="asc")]
    assert [item["id"] for item in items] == listed
    assert len(set(listed)) == 4
    assert await OpenAIConversationsSession(conversation_id=conversation.id, openai_client=client).get_items() == items


async def test_the_model_sees_the_session(client: AsyncOpenAI, session: OpenAIConversationsSession) -> None:
    """Messages and items added by hand are in the prompt; popped items are not."""
    keeper = agent(client)
    await Runner.run(keeper, "My name is Ada.", session=session)
    await session.add_items([said("I like sums."), {"role": "assistant", "content": "So do I."}, said("I hate tea.")])
    popped = await session.pop_item()
    assert popped is not None
    assert text(popped) == "I hate tea."
    prompt = (await Runner.run(keeper, "[[show-prompt]]", session=session)).final_output
    parts = ["My name is Ada.", "You said: My name is Ada.", "I like sums.", "So do I."]
    assert sorted(parts, key=prompt.index) == parts
    assert "I hate tea." not in prompt


async def test_the_items_of_a_session(client: AsyncOpenAI, session: OpenAIConversationsSession) -> None:
    """Items are added in batches and listed in pages; a limit gives the newest; clearing deletes the conversation."""
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.add_items([said(str(number)) for number in range(45)])
    assert [text(item) for item in await session.get_items()] == [str(number) for number in range(45)]
    assert [text(item) for item in await session.get_items(limit=3)] == ["42", "43", "44"]
    popped = await session.pop_item()
    assert popped is not None
    assert text(popped) == "44"
    assert len(await session.get_items()) == 44
    cleared = session.session_id
    await session.clear_session()
    with pytest.raises(NotFoundError):
        await client.conversations.retrieve(cleared)
    assert await session.get_items() == []
    assert session.session_id != cleared


@pytest.mark.parametrize("mode", ["input", "previous_response_id"])
async def test_a_session_that_compacts(client: AsyncOpenAI, mode: Any) -> None:
    """The session's items are replaced by the compacted ones, and the model sees the same text."""
    session = OpenAIResponsesCompactionSession("any", SQLiteSession("any"), client=client, compaction_mode=mode)
    session.model = MODEL  # the constructor accepts OpenAI's names only
    keeper = agent(client)
    result = await Runner.run(keeper, "My name is Ada.", session=session)
    await session.run_compaction({"force": True, "response_id": str(result.last_response_id)})
    assert (await session.get_items())[-1]["type"] == "compaction"
    prompt = (await Runner.run(keeper, "[[show-prompt]]", session=session)).final_output
    assert "You said: My name is Ada." in prompt


async def test_a_run_in_a_conversation(client: AsyncOpenAI) -> None:
    """With `conversation_id` the server adds the messages; each run sends only its new one."""
    keeper = agent(client)
    conversation = await client.conversations.create()
    first = await Runner.run(keeper, "one", conversation_id=conversation.id)
    second = await Runner.run(keeper, "two", conversation_id=conversation.id)
    listed = [text(item.to_dict()) async for item in client.conversations.items.list(conversation.id, order="asc")]
    assert listed == ["one", first.final_output, "two", second.final_output]
    stored = await client.responses.retrieve(str(second.last_response_id))
    assert stored.conversation is not None
    assert stored.conversation.id == conversation.id


@pytest.mark.parametrize("streamed", [False, True])
async def test_errors_are_the_sdk_s_own(client: AsyncOpenAI, streamed: bool) -> None:
    """An unknown model, response or conversation ends the run with the SDK's exception, code and parameter."""

    async def run(keeper: Any, **options: Any) -> None:
        if not streamed:
            await Runner.run(keeper, "x", run_config=RunConfig(), **options)
            return
        async for _ in Runner.run_streamed(keeper, "x", **options).stream_events():
            pass

    with pytest.raises(NotFoundError) as model:
        await run(agent(client, model="no-such-model"))
    assert model.value.code == "model_not_found"
    with pytest.raises(BadRequestError) as response:
        await run(agent(client), previous_response_id="resp_unknown")
    assert (response.value.code, response.value.param) == ("previous_response_not_found", "previous_response_id")
    with pytest.raises(NotFoundError) as conversation:
        await run(agent(client), conversation_id="conv_unknown")
    assert conversation.value.param == "conversation"
