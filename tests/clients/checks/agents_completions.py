"""openai-agents over Chat Completions against a live server, whose address is in BASE_URL."""

import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)

FIND = '[[think: Who is it?]][[say: Let me see.]][[call: find {"name": "Ada"}]]'


class Answer(BaseModel):
    total: int


@function_tool
def find(name: str) -> str:
    """Looks a person up, and has the model call add next."""
    return f'{name} found. [[call: add {{"left": 2, "right": 40}}]]'


@function_tool
async def add(left: int, right: int) -> str:
    """Adds, and has the model say the sum."""
    return f"[[say: It is {left + right}.]]"


@pytest.fixture
async def model() -> AsyncIterator[OpenAIChatCompletionsModel]:
    async with AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key="any", max_retries=0, timeout=120) as client:
        yield OpenAIChatCompletionsModel(model="smollm2-135m", openai_client=client)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_run_with_two_tools(model: OpenAIChatCompletionsModel, streamed: bool) -> None:
    """Three turns, and a second run over the whole history."""
    keeper: Any = Agent(name="Keeper", instructions="You keep a lighthouse.", model=model, tools=[find, add])
    result: Any
    if streamed:
        result = Runner.run_streamed(keeper, FIND)
        async for _ in result.stream_events():
            pass
    else:
        result = await Runner.run(keeper, FIND)
    assert result.final_output == "It is 42."
    calls = [item.raw_item.name for item in result.new_items if item.type == "tool_call_item"]
    assert calls == ["find", "add"]
    after = await Runner.run(keeper, [*result.to_input_list(), {"role": "user", "content": "[[say: Yes.]]"}])
    assert after.final_output == "Yes."


async def test_a_schema(model: OpenAIChatCompletionsModel) -> None:
    keeper: Any = Agent(name="Keeper", model=model, output_type=Answer)
    result = await Runner.run(keeper, '[[say: {"total": 3}]]')
    assert result.final_output == Answer(total=3)
