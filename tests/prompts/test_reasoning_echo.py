"""Restored reasoning for clients that leave it out: per scope, bounded, and only after the same history."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from responses_api.services.prompts.reasoning_echo import HistoryDigest, ReasoningEcho

Item = dict[str, Any]


def user(text: str) -> Item:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def answer(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def reasoning(text: str) -> Item:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def call(arguments: str) -> Item:
    return {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments}


def without_thinking(items: list[Item]) -> list[Item]:
    return [{**item, "id": "of the client's own"} for item in items if item["type"] != "reasoning"]


def types(items: Any) -> list[str]:
    return [item["type"] for item in items]


def test_the_reasoning_of_a_turn_is_restored() -> None:
    echo = ReasoningEcho(1000)
    output = [reasoning("Hm."), answer("Let me see."), call("{}"), reasoning("So?"), answer("No.")]
    echo.remember("a", HistoryDigest.of([user("Why?")]), output)
    restored = echo.restore("a", without_thinking([user("Why?"), *output, user("Really?")]))
    assert types(restored) == types([user("Why?"), *output, user("Really?")])
    assert [item["content"] for item in restored if item["type"] == "reasoning"] == [
        reasoning("Hm.")["content"],
        reasoning("So?")["content"],
    ]


def test_only_the_same_answer_to_the_same_history_and_scope_is_recognised() -> None:
    echo = ReasoningEcho(1000)
    echo.remember("a", HistoryDigest.of([user("Why?")]), [reasoning("Hm."), answer("Because.")])
    for scope, items in (
        ("b", [user("Why?"), answer("Because.")]),
        ("a", [user("Why not?"), answer("Because.")]),
        ("a", [user("Why?"), answer("Because!")]),
        ("a", [user("Why?"), answer("Well."), answer("Because.")]),
    ):
        assert echo.restore(scope, items) == items
    own = [user("Why?"), reasoning("My own."), answer("Because.")]
    assert echo.restore("a", own) == own


def test_a_deleted_owner_is_forgotten_for_all_models() -> None:
    echo = ReasoningEcho(1000)
    items = [user("Why?"), answer("Because.")]
    for scope in ("project-1/m", "project-1/n", "project-10/m"):
        echo.remember(scope, HistoryDigest.of(items[:1]), [reasoning("Hm."), items[1]])
    echo.forget("project-1")
    assert echo.restore("project-1/m", items) == echo.restore("project-1/n", items) == items
    assert types(echo.restore("project-10/m", items)) == ["message", "reasoning", "message"]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.text(max_size=9)), max_size=20), st.integers(0, 30)
)
def test_its_memory_is_bounded(entries: list[tuple[str, int, str]], limit: int) -> None:
    echo = ReasoningEcho(limit)
    for scope, number, text in entries:
        echo.remember(scope, HistoryDigest.of([user(str(number))]), [reasoning(text), answer("x")])
        texts = list(echo._texts.values())
        assert echo._bytes == sum(len(text.encode(errors="replace")) for text in texts) <= limit
        assert sum(echo._scopes.values()) == len(texts)
