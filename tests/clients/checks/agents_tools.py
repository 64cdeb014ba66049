"""openai-agents with tools and handoffs against a live server, whose address is in BASE_URL."""

import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from openai.types.shared import Reasoning
from pydantic import BaseModel

set_tracing_disabled(True)


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
async def client() -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key="any", max_retries=0, timeout=120) as client:
        yield client


def agent(client: AsyncOpenAI, name: str = "Keeper", settings: ModelSettings | None = None, **options: Any) -> Any:
    model = OpenAIResponsesModel(model="smollm2-135m", openai_client=client)
    return Agent(name=name, model=model, model_settings=settings or ModelSettings(), **options)


async def run(streamed: bool, *arguments: Any, **options: Any) -> Any:
    if not streamed:
        return await Runner.run(*arguments, run_config=RunConfig(), **options)
    result = Runner.run_streamed(*arguments, **options)
    async for _ in result.stream_events():
        pass
    return result


FIND = '[[think: Who is it?]][[say: Let me see.]][[call: find {"name": "Ada"}]]'
STEPS = ["reasoning_item", "message_output_item", "tool_call_item", "tool_call_output_item"]


def kinds(result: Any) -> list[str]:
    return [item.type for item in result.new_items]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("way", ["replayed", "chained", "in a conversation", "in a session", "unstored"])
async def test_a_run_with_two_tools(client: AsyncOpenAI, way: str, streamed: bool) -> None:
    """Three turns, with each way to keep a history; a later run continues from there."""
    settings = (
        ModelSettings(store=False, response_include=["reasoning.encrypted_content"]) if way == "unstored" else None
    )
    keeper = agent(client, settings=settings, tools=[find, add])
    options: dict[str, Any] = {}
    if way == "chained":
        options["auto_previous_response_id"] = True
    elif way == "in a conversation":
        options["conversation_id"] = (await client.conversations.create()).id
    elif way == "in a session":
        options["session"] = OpenAIConversationsSession(openai_client=client)
    result = await run(streamed, keeper, FIND, **options)
    assert result.final_output == "It is 42."
    assert kinds(result) == [*STEPS, *STEPS[2:], "message_output_item"]
    assert [item.output for item in result.new_items if item.type == "tool_call_output_item"][1] == "[[say: It is 42.]]"
    question: Any = "[[say: Yes.]]"
    if way in ("replayed", "unstored"):
        question = [*result.to_input_list(), {"role": "user", "content": question}]
    elif way == "chained":
        options = {"previous_response_id": result.last_response_id}
    after = await run(streamed, keeper, question, **options)
    assert after.final_output == "Yes."


@pytest.mark.parametrize("streamed", [False, True])
async def test_parallel_calls(client: AsyncOpenAI, streamed: bool) -> None:
    text = '[[call: add {"left": 1, "right": 2}]][[call: add {"left": 3, "right": 4}]]'
    result = await run(streamed, agent(client, tools=[find, add]), text)
    assert kinds(result) == [STEPS[2], STEPS[2], STEPS[3], STEPS[3], "message_output_item"]
    assert result.final_output == "It is 3.It is 7."
    one = ModelSettings(parallel_tool_calls=False)
    alone = await run(streamed, agent(client, settings=one, tools=[find, add]), text)
    assert kinds(alone) == [*STEPS[2:], "message_output_item"]


@pytest.mark.parametrize("choice", ["required", "add"])
async def test_a_call_that_must_be(client: AsyncOpenAI, choice: str) -> None:
    """The agent stops at the first tool, although the script gives text."""
    settings = ModelSettings(tool_choice=choice, reasoning=Reasoning(effort="low"))
    keeper = agent(client, settings=settings, tools=[add], tool_use_behavior="stop_on_first_tool")
    result = await run(False, keeper, "[[say: I would rather not.]]")
    assert result.final_output.startswith("[[say: It is ")


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_handoff(client: AsyncOpenAI, streamed: bool) -> None:
    """The other agent answers, with its own tools and the whole history."""
    clerk = agent(client, "Clerk", tools=[add], handoff_description="Adds.")
    desk = agent(client, "Desk", handoffs=[handoff(clerk)], tools=[find])
    result = await run(streamed, desk, "[[call: transfer_to_clerk {}]]")
    assert result.last_agent.name == "Clerk"
    assert "Clerk" in result.final_output
    assert kinds(result)[:2] == ["handoff_call_item", "handoff_output_item"]
    after = await run(
        streamed, clerk, [*result.to_input_list(), {"role": "user", "content": '[[call: add {"left": 2, "right": 3}]]'}]
    )
    assert after.final_output == "It is 5."


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_typed_answer_after_a_tool(client: AsyncOpenAI, streamed: bool) -> None:
    keeper = agent(client, tools=[add], output_type=Answer)
    result = await run(streamed, keeper, '[[call: add {"left": 2, "right": 3}]]')
    assert isinstance(result.final_output, Answer)
    assert kinds(result) == [*STEPS[2:], "message_output_item"]
