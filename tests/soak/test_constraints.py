"""The default model with random schemas and tools: several concurrent answers, beside one of free text.

Every answer ends, and every completed answer has the required form. `make soak` tries 200 schemas, each greedy and
sampled, and 100 sets of tools, `make test` a few of them.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from openai.types.responses import Response

from tests.live.server import LiveServer
from tests.schemas import schemas, tool_sets, validate

from . import LONG, MODEL

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(7000 if LONG else 300)]

CONCURRENT_ANSWERS = 8 if LONG else 4
SCHEMAS, TOOL_SETS = (200, 100) if LONG else (4, 4)
MAX_TOKENS = 96 if LONG else 48
PARALLEL = st.booleans() if LONG else st.just(False)
"""In a short run one call is enough, so that some answers are completed."""
ANSWER_SECONDS = 240
PEOPLE = "Anna, who is 34 and lives in Oslo, and Ben, who is 51, bought 3 red chairs on 2026-05-04."
SAMPLINGS = ({"temperature": 0.0}, {"temperature": 1.0, "top_p": 0.95})


def settings(examples: int) -> hypothesis.settings:
    """Settings for so many different examples; a long run has new ones each time."""
    return hypothesis.settings(
        max_examples=max(1, examples // CONCURRENT_ANSWERS),
        derandomize=not LONG,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture
def neighbour(real_server: LiveServer) -> Iterator[None]:
    """A client that requests free text all the time. Its answers must not depend on what runs beside them."""
    finished, answers = threading.Event(), []

    def read() -> None:
        while not finished.is_set():
            answer = create(real_server, input="Tell me about the sea.", max_output_tokens=MAX_TOKENS, temperature=0)
            answers.append(answer.output_text)

    thread = threading.Thread(target=read)
    thread.start()
    yield
    finished.set()
    thread.join()
    assert len(set(answers)) == 1, "greedy text depends on concurrent answers"


def create(server: LiveServer, **parameters: Any) -> Response:
    return server.client().with_options(timeout=ANSWER_SECONDS).responses.create(model=MODEL, store=False, **parameters)


def ask_concurrently(ask: Callable[[Any], Response], questions: list[Any]) -> list[Response]:
    with ThreadPoolExecutor(CONCURRENT_ANSWERS) as pool:
        return list(pool.map(ask, questions))


def test_every_answer_matches_its_schema(real_server: LiveServer, neighbour: None) -> None:
    ends: Counter[str] = Counter()

    @settings(SCHEMAS)
    @given(st.lists(schemas(), min_size=CONCURRENT_ANSWERS, max_size=CONCURRENT_ANSWERS))
    def check(examples: list[dict[str, Any]]) -> None:
        for sampling in SAMPLINGS:

            def ask(schema: dict[str, Any], sampling: dict[str, float] = sampling) -> Response:
                form: Any = {"format": {"type": "json_schema", "name": "answer", "schema": schema}}
                return create(real_server, input=PEOPLE, text=form, max_output_tokens=MAX_TOKENS, **sampling)

            for schema, answer in zip(examples, ask_concurrently(ask, examples), strict=True):
                ends[answer.status or ""] += 1
                if answer.status == "completed":
                    validate(answer.output_text, schema)
                else:
                    assert answer.status == "incomplete", answer

    check()
    assert ends["completed"], ends
    print(f"answers with a schema: {dict(ends)}")


def test_every_call_matches_a_declared_tool(real_server: LiveServer, neighbour: None) -> None:
    ends: Counter[str] = Counter()

    @settings(TOOL_SETS)
    @given(
        st.lists(tool_sets(), min_size=CONCURRENT_ANSWERS, max_size=CONCURRENT_ANSWERS),
        st.sampled_from(SAMPLINGS),
        PARALLEL,
    )
    def check(examples: list[list[dict[str, Any]]], sampling: dict[str, float], parallel: bool) -> None:
        def ask(tools: Any) -> Response:
            parameters: dict[str, Any] = {"tools": tools, "tool_choice": "required", "max_output_tokens": MAX_TOKENS}
            return create(real_server, input=PEOPLE, parallel_tool_calls=parallel, **parameters, **sampling)

        for tools, answer in zip(examples, ask_concurrently(ask, examples), strict=True):
            declared = {tool["name"]: tool for tool in tools}
            ends[answer.status or ""] += 1
            assert answer.status in ("completed", "incomplete"), answer
            calls = [item.to_dict() for item in answer.output]
            assert parallel or len(calls) <= 1
            assert all(call["type"] in ("function_call", "custom_tool_call") for call in calls)
            assert calls or answer.status == "incomplete"
            for call in calls:
                tool = declared[str(call["name"])]
                if call["type"] == "function_call" and call["status"] == "completed":
                    validate(str(call["arguments"]), tool["parameters"])

    check()
    assert ends["completed"], ends
    print(f"answers with calls: {dict(ends)}")
