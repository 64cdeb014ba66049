"""What the engine is told about caching the state of a request."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from inference.scripted.tokenizer import ScriptedTokenizer
from inference.types import GenerationRequest
from responses_api.sealing import fingerprint
from responses_api.worker.generation.prepare_generation import Compacting, Prepared, prepare_generation
from responses_api.worker.hosting.catalogue import disk_options
from tests.factories import make_project, start_response
from tests.turns import INFO

pytestmark = pytest.mark.django_db


class CutTokenizer(ScriptedTokenizer):
    """A tokenizer whose prompts part before their last token."""

    def cuts(self, prompt: Sequence[int]) -> tuple[int, ...]:
        return (len(prompt) - 1,)


def generation(*, store: bool = True, **parameters: Any) -> GenerationRequest:
    row = start_response("hello", project=make_project(), **parameters)
    row.store = store
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


def test_only_the_state_of_what_is_stored_may_be_on_the_disk() -> None:
    """As the row says, whatever the request and the defaults were; and not where a request asks for memory alone."""
    assert generation().cache_on_disk
    assert generation(prompt_cache_retention="24h").cache_on_disk
    assert not generation(store=False).cache_on_disk
    assert not generation(prompt_cache_retention="in_memory").cache_on_disk


def test_what_is_cached_is_held_by_the_response_if_it_can_be_deleted() -> None:
    request = generation()
    assert request.id == "r"
    assert request.cache_holder.startswith("resp_")
    assert generation(store=False).cache_holder == ""


def test_summaries_are_on_the_disk_as_their_request_is() -> None:
    """They are made from all of a history."""
    for store in (True, False):
        row = start_response(
            [{"role": "user", "content": "hello"}, {"type": "compaction_trigger"}], project=make_project()
        )
        row.store = store
        compacting = prepare_generation(
            row=row, request_id="r", tokenizer=CutTokenizer(), info=INFO, cache_scope="mine"
        )
        assert isinstance(compacting, Compacting)
        step = compacting.next()
        if isinstance(step, GenerationRequest):
            assert (step.cache_on_disk, step.cache_holder) == (store, row.public_id if store else "")


def test_a_worker_seals_with_a_secret_made_of_the_servers(settings: Any, tmp_path: Path) -> None:
    """Another one than that of anything else; and without a directory nothing is on the disk."""
    assert disk_options() is None
    settings.RESPONSES_PROMPT_CACHE_DIR, settings.RESPONSES_PROMPT_CACHE_DIR_MAX_BYTES = tmp_path, 5
    options = disk_options()
    assert options is not None
    assert (options.directory, options.max_bytes) == (tmp_path, 5)
    assert options.secret not in settings.SECRET_KEY.encode()
    assert options.secret.hex() != fingerprint(settings.SECRET_KEY)
    assert repr(options.secret) not in repr(options)
    settings.SECRET_KEY += "another"
    assert disk_options() != options
