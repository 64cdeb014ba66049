"""What the engine is told about caching the state of a request."""

from collections.abc import Sequence
from typing import Any

import pytest

from inference.scripted.tokenizer import ScriptedTokenizer
from inference.types import GenerationRequest
from responses_api.worker.generation.prepare_generation import Prepared, prepare_generation
from tests.factories import make_project, start_response
from tests.turns import INFO

pytestmark = pytest.mark.django_db


class CutTokenizer(ScriptedTokenizer):
    """A tokenizer whose prompts part before their last token."""

    def cuts(self, prompt: Sequence[int]) -> tuple[int, ...]:
        return (len(prompt) - 1,)


def generation(**parameters: Any) -> GenerationRequest:
    row = start_response("hello", project=make_project(), **parameters)
    prepared = prepare_generation(row=row, request_id="r", tokenizer=CutTokenizer(), info=INFO, cache_scope="mine")
    assert isinstance(prepared, Prepared)
    assert prepared.generation is not None
    return prepared.generation


def test_a_key_is_a_hint_inside_the_scope() -> None:
    """Callers choose the key; the scope is that of the row, whatever the key."""
    request = generation(prompt_cache_key="project-2")
    assert (request.cache_scope, request.cache_key) == ("mine", "project-2")
    assert generation().cache_key == ""


def test_the_engine_learns_where_prompts_part() -> None:
    request = generation()
    assert request.cuts == (len(request.prompt) - 1,)
