"""Cutting a history, and the items that a compaction item replaces."""

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

from hypothesis import given
from hypothesis import strategies as st

from responses_api.protocol.items.compaction import Compacted, Item, Items, expand, is_instruction, split_history
from responses_api.protocol.items.pairing import TOOL_PAIRS, check_tool_pairs

CALLS = {output: call for call, output in TOOL_PAIRS.items()}


def up_to(tokens: int) -> Callable[[Items], bool]:
    """A check that this many items fit."""
    return lambda items: len(items) <= tokens


def message(role: str, text: str = "x") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def group(number: int, calls: int) -> list[dict[str, Any]]:
    """Parallel calls, then their outputs in another order."""
    ids = [f"call_{number}_{call}" for call in range(calls)]
    made = [{"type": "function_call", "call_id": id, "name": "f", "status": "completed"} for id in ids]
    return [*made, *({"type": "function_call_output", "call_id": id} for id in reversed(ids))]


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Turns of users, assistants and tools, with instructions at any place."""
    items: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["user", "assistant", "developer", "group", "reasoning"]))
        if kind == "group":
            items += group(number, draw(st.integers(1, 3)))
        elif kind == "reasoning":
            items.append({"type": "reasoning", "summary": [], "number": number})
        else:
            items.append(message(kind, str(number)))
    return items


@given(histories(), st.integers(0, 40))
def test_a_split_loses_nothing_and_separates_no_call_from_its_output(items: list[dict[str, Any]], keep: int) -> None:
    split = split_history(items, fits=up_to(keep))
    parts = [*split.instructions, *split.older, *split.retained]
    assert sorted(map(str, parts)) == sorted(map(str, items))
    assert list(split.instructions) == [item for item in items if is_instruction(item)]
    for part in (split.older, split.retained):
        assert list(part) == [item for item in items if item in part]
        check_tool_pairs((), part)
    users = [item for item in items if item["type"] == "message" and item["role"] == "user"]
    if users:
        assert users[-1] in split.retained


@given(histories(), st.integers(1, 40))
def test_a_larger_limit_keeps_more(items: list[dict[str, Any]], keep: int) -> None:
    smaller, larger = (split_history(items, fits=up_to(tokens)) for tokens in (keep, keep + 5))
    assert len(smaller.retained) <= len(larger.retained)
    if len([item for item in items if not is_instruction(item)]) <= keep and any(map(is_user, items[:1])):
        assert not smaller.older


def is_user(item: Item) -> bool:
    return bool(item["type"] == "message" and item["role"] == "user")


@given(histories(), st.integers(0, 40))
def test_as_much_is_kept_as_fits(items: list[dict[str, Any]], keep: int) -> None:
    """Bisection finds the same cut as checking all cuts."""
    rest = [item for item in items if not is_instruction(item)]
    split = split_history(items, fits=up_to(keep))
    whole = [number for number, item in enumerate(rest) if is_user(item) and len(rest) - number <= keep]
    if whole and not any(item["type"] == "function_call" for item in rest):
        assert list(split.retained) == rest[whole[0] :]


def test_a_long_history_takes_few_checks() -> None:
    """However much is kept."""
    items = [message("user", str(number)) for number in range(6000)]
    for keep in (1, 100, 5999, 2**31):
        fits = Mock(side_effect=up_to(keep))
        assert len(split_history(items, fits=fits).retained) == min(keep, 6000)
        assert fits.call_count < 30
        assert max(len(call.args[0]) for call in fits.call_args_list) <= 2 * keep


def test_an_agents_long_turn_is_cut_between_its_groups() -> None:
    """The user's message stays, although the items after it are summarised."""
    asked = message("user", "the task")
    groups = [group(number, 2) for number in range(5)]
    items = [message("user", "before"), message("assistant"), asked, *(item for made in groups for item in made)]
    split = split_history(items, fits=up_to(8))
    assert list(split.retained) == [asked, *groups[3], *groups[4]]
    assert list(split.older) == [items[0], items[1], *groups[0], *groups[1], *groups[2]]


@given(histories(), histories(), histories(), st.text(max_size=5))
def test_the_last_compaction_item_replaces_the_items_before_it(
    before: list[dict[str, Any]], retained: list[dict[str, Any]], after: list[dict[str, Any]], summary: str
) -> None:
    """With and without the retained items beside it; its content survives the encoding."""
    held = Compacted(summary=summary, items=tuple(item for item in retained if not is_instruction(item)))
    assert Compacted.decode(held.encode()) == held
    blobs = {"old": Compacted(summary="older", items=()), "new": held}
    item = {"type": "compaction", "encrypted_content": "new"}
    old = {"type": "compaction", "encrypted_content": "old"}
    kept = [entry for entry in before if is_instruction(entry)]
    alone = expand([*kept, item, *after], blobs.__getitem__)
    assert alone == expand([old, *before, item, *after], blobs.__getitem__)
    assert alone == expand([*kept, *held.items, item, *after], blobs.__getitem__)
    assert alone[: len(kept)] == kept
    assert after == [] or alone[-len(after) :] == after
