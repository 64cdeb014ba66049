"""Which prompts are read next: short ones together, long ones in slices, and in turns."""

from typing import Any

import pytest

from inference.engine.detokenizer import BytesDetokenizer
from inference.engine.prompt_queue import PromptQueue
from inference.engine.sequence import Sequence, request_error
from inference.prefix_cache.prefix_cache import Hit
from inference.types import GenerationRequest, ModelInfo, Sampling

SLICE = 10
INFO = ModelInfo(name="m", digest="d", context_length=100, vocab_size=256)


class NoPrefixes:
    wants_cuts = False

    def read(self, scope: str, prompt: tuple[int, ...]) -> None:
        return None

    def fetch(self, scope: str, prompt: tuple[int, ...], *, key: str, reading: None) -> Hit:
        return Hit()


def request(name: str, tokens: int, **more: Any) -> GenerationRequest:
    return GenerationRequest(id=name, prompt=(1,) * tokens, max_tokens=5, sampling=Sampling(), **more)


@pytest.fixture
def queue() -> PromptQueue:
    return PromptQueue(SLICE)


def fill(queue: PromptQueue, **lengths: int) -> None:
    for name, length in lengths.items():
        queue.add(Sequence(request(name, length), limit=5, detokenizer=BytesDetokenizer([b"x"] * 256)))
    queue.start(NoPrefixes(), is_idle=False)  # type: ignore[arg-type]


def next_names(queue: PromptQueue, *, is_idle: bool = False, awaits_first_token: bool = False) -> list[str]:
    """Those that are read next; short ones leave the queue, as when they are handed over."""
    group = queue.next_group(is_idle=is_idle, awaits_first_token=awaits_first_token)
    for sequence in group:
        if queue.is_long(sequence):
            sequence.done += SLICE
        else:
            queue.remove(sequence.request.id)
    return [sequence.request.id for sequence in group]


def test_short_prompts_are_read_together_as_far_as_they_fit(queue: PromptQueue) -> None:
    fill(queue, a=5, b=5, c=5)
    assert next_names(queue) == ["a", "b"]
    assert next_names(queue) == ["c"]


def test_an_idle_engine_reads_more_at_once(queue: PromptQueue) -> None:
    fill(queue, a=5, b=5, c=5, d=5, e=5, f=5, g=5)
    assert next_names(queue, is_idle=True) == ["a", "b", "c", "d", "e", "f"]


def test_long_and_short_prompts_take_turns(queue: PromptQueue) -> None:
    fill(queue, long=35, a=8, b=8, c=8)
    assert [next_names(queue) for _ in range(7)] == [["a"], ["long"], ["b"], ["long"], ["c"], ["long"], ["long"]]


def test_no_slice_comes_between_a_sequence_and_its_first_token(queue: PromptQueue) -> None:
    fill(queue, long=35)
    assert next_names(queue, awaits_first_token=True) == []
    assert next_names(queue) == ["long"]


def test_a_sequence_is_read_only_after_it_was_started(queue: PromptQueue) -> None:
    queue.add(Sequence(request("late", 5), limit=5, detokenizer=BytesDetokenizer([b"x"])))
    assert next_names(queue) == []
    (chunk,) = queue.start(NoPrefixes(), is_idle=False)  # type: ignore[arg-type]
    assert (chunk.request_id, chunk.started) == ("late", True)
    assert next_names(queue) == ["late"]


def test_a_request_that_the_model_can_take_has_no_error() -> None:
    assert request_error(request("a", 99), INFO) == ""
    assert request_error(request("a", 100), INFO) == "The prompt fills the model's context."
    assert request_error(request("a", 0), INFO) == "The prompt is empty."
