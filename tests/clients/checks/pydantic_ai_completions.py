"""pydantic-ai over Chat Completions against a live server, whose address is in BASE_URL."""

import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent  # type: ignore[import-not-found, unused-ignore]
from pydantic_ai.models.openai import OpenAIChatModel  # type: ignore[import-not-found, unused-ignore]
from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found, unused-ignore]

FIND = '[[think: Who is it?]][[call: find {"name": "Ada"}]]'


@pytest.fixture
async def model() -> AsyncIterator[OpenAIChatModel]:
    async with AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key="any", max_retries=0, timeout=120) as client:
        yield OpenAIChatModel("smollm2-135m", provider=OpenAIProvider(openai_client=client))


def agent(model: OpenAIChatModel) -> Any:
    """An agent with two tools, the first of which makes the model call the second."""
    keeper: Any = Agent(model, instructions="You keep a lighthouse.")

    @keeper.tool_plain
    def find(name: str) -> str:
        return f'{name} found. [[call: add {{"left": 2, "right": 40}}]]'

    @keeper.tool_plain
    def add(left: int, right: int) -> str:
        return f"[[say: It is {left + right}.]]"

    return keeper


async def test_a_run_with_two_tools(model: OpenAIChatModel) -> None:
    """Three turns with the model's thinking, and a second run over the whole history."""
    keeper = agent(model)
    result = await keeper.run(FIND)
    assert result.output == "It is 42."
    parts = [part.part_kind for message in result.all_messages() for part in message.parts]
    turn = ["tool-call", "tool-return"]
    assert parts == ["user-prompt", "thinking", *turn, *turn, "text"]
    after = await keeper.run("[[say: Yes.]]", message_history=result.all_messages())
    assert after.output == "Yes."


async def test_a_streamed_run(model: OpenAIChatModel) -> None:
    async with agent(model).run_stream(FIND) as result:
        texts = [text async for text in result.stream_text(delta=True, debounce_by=None)]
    assert "".join(texts) == "It is 42."
