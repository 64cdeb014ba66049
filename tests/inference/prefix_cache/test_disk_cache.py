"""The second tier: what a process has written another one resumes, nobody else can, and nothing outlives its owner."""

import stat
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from inference.prefix_cache import disk_cache, states
from inference.prefix_cache.disk_cache import DiskCache, DiskOptions
from inference.prefix_cache.states import States

from .disk_process import PROMPT, SECRET, files, running
from .fakes import KINDS, new_state


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_next_process_resumes_where_the_last_one_ended(tmp_path: Path, kind: str) -> None:
    """Also what was put together of several files, and what is longer than an edge."""
    with patch.object(states, "EDGE_TOKENS", 4):
        with running(tmp_path, kind) as first:
            first.insert(PROMPT[:6])
            first.insert(PROMPT)
        with running(tmp_path, kind) as second:
            assert second.covered((*PROMPT, 99)) == len(PROMPT)
            assert second.covered((*PROMPT[:6], 99)) == 6
            second.insert((*PROMPT, 99, 98))
        with running(tmp_path, kind) as third:
            assert third.covered((*PROMPT, 99, 98, 97)) == len(PROMPT) + 2


def test_a_prompt_that_turns_off_inside_a_file_uses_its_beginning(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        first.insert(PROMPT)
    with running(tmp_path) as second:
        assert second.covered((*PROMPT[:5], 99, 98)) == 5


def test_what_memory_has_is_not_read_again(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        process.insert(PROMPT)
        assert process.cache.read("a", (*PROMPT, 99)) is None


def test_what_memory_has_dropped_is_read(tmp_path: Path) -> None:
    with running(tmp_path, memory=8 * len(PROMPT)) as process:
        process.insert(PROMPT)
        process.insert((77, *PROMPT[1:]))
        assert process.covered((*PROMPT, 99)) == len(PROMPT)


def test_a_state_that_cannot_be_taken_over_is_a_miss(tmp_path: Path) -> None:
    """It doesn't stop the engine, whose thread takes it over."""
    with running(tmp_path) as first:
        first.insert(PROMPT)
    with running(tmp_path) as second, patch.object(States, "add", side_effect=ValueError("unfit")):
        assert second.covered((*PROMPT, 99)) == 0


def test_only_what_may_be_on_the_disk_is_there(tmp_path: Path) -> None:
    """Of a sequence that others share, the part that belongs to one that may."""
    with running(tmp_path) as process:
        process.insert(PROMPT, on_disk=False)
        assert files(tmp_path) == []
        process.insert((*PROMPT[:5], 50, 51))
    with running(tmp_path) as process:
        assert process.covered((*PROMPT, 99)) == 5
        assert process.covered((*PROMPT[:5], 50, 51, 52)) == 7


def test_what_sequences_have_in_common_is_written_once(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        process.insert((*PROMPT, 50))
        before = len(files(tmp_path))
        process.insert((*PROMPT, 50))
        process.insert((*PROMPT, 60))
        process.insert((*PROMPT, 70))
        assert (before, len(files(tmp_path))) == (1, 3)


def test_files_are_private_and_tell_nothing(tmp_path: Path) -> None:
    """Neither by their names nor by what is in them, and nobody else may open them."""
    directory = tmp_path / "cache"
    with running(directory, model="the-model", signature="the-signature") as process:
        process.insert(PROMPT, scope="project-1")
    (file,) = files(directory)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == stat.S_IMODE(directory.stat().st_mode) == 0o700
    content, name = file.read_bytes(), str(file.relative_to(directory))
    for told in ("project-1", "the-model", "the-signature", "tokens", "part", "metadata"):
        assert told not in name
        assert told.encode() not in content
    assert bytes(new_state("full", PROMPT)[0].keys) not in content


@pytest.mark.parametrize("other", [{"model": "n"}, {"signature": "t"}, {"secret": b"t" * 32}])
def test_another_model_another_form_or_another_secret_is_a_miss(tmp_path: Path, other: dict[str, Any]) -> None:
    with running(tmp_path) as first:
        first.insert(PROMPT)
    with running(tmp_path, **other) as second:
        assert second.covered((*PROMPT, 99)) == 0
    with running(tmp_path) as third:
        assert third.covered((*PROMPT, 99)) == len(PROMPT), "and is left alone"
    with patch.object(disk_cache, "VERSION", "later"), running(tmp_path) as later:
        assert later.covered((*PROMPT, 99)) == 0


def test_a_scope_reads_no_other(tmp_path: Path) -> None:
    """Not even when somebody moves its files."""
    with running(tmp_path) as first:
        first.insert(PROMPT)
        first.insert((31, 32, 33), scope="b")
    mine, other = (tmp_path / first.disk._name(scope) for scope in ("a", "b"))
    with running(tmp_path) as second:
        assert second.covered((*PROMPT, 99), scope="b") == 0
    (file,) = files(mine)
    moved = file.rename(other / file.name)
    with running(tmp_path) as third:
        assert third.covered((*PROMPT, 99), scope="b") == 0
        assert third.covered((31, 32, 33, 34), scope="b") == 3
    assert not moved.exists()


def test_a_scope_that_is_forgotten_has_no_files_whoever_wrote_them(tmp_path: Path) -> None:
    """Of another model, of another process that runs; and none is written again."""
    with running(tmp_path, model="n") as other, running(tmp_path) as process:
        other.insert(PROMPT)
        process.insert(PROMPT)
        process.insert(PROMPT, scope="b")
        process.disk.forget("a")
        process.insert((1, 2, 3))
        assert {file.parent.name for file in files(tmp_path)} == {process.disk._name("b")}
        assert not (tmp_path / process.disk._name("a")).exists()
        assert other.covered((*PROMPT, 99)) == len(PROMPT), "from its memory"
        other.cache.forget("a")
        assert other.covered((*PROMPT, 99)) == 0


def test_a_cache_that_was_never_opened_forgets_too(tmp_path: Path) -> None:
    """As that of a model that isn't loaded, or no longer."""
    with running(tmp_path) as process:
        process.insert(PROMPT)
        process.insert(PROMPT, scope="b")
    closed = DiskCache(DiskOptions(directory=tmp_path, secret=SECRET, max_bytes=10**9), model="another")
    closed.forget("a")
    closed.close()
    assert {file.parent.name for file in files(tmp_path)} == {closed._name("b")}
    process.disk.forget("b")
    process.disk.settle()
    assert files(tmp_path) == []


def test_scopes_that_are_no_more_lose_their_files(tmp_path: Path) -> None:
    """Also when nobody was there to hear that they are forgotten."""
    with running(tmp_path) as process:
        for scope in ("a", "b", "c"):
            process.insert(PROMPT, scope=scope)
        process.disk.retain(["b"])
        process.disk.settle()
        process.cache.retain(["b"])
        assert [process.covered((*PROMPT, 99), scope=scope) for scope in ("a", "b", "c")] == [0, len(PROMPT), 0]
        assert {file.parent.name for file in files(tmp_path)} == {process.disk._name("b")}
        process.insert(PROMPT, scope="a")
        assert process.covered((*PROMPT, 99), scope="a") == len(PROMPT), "a scope that came meanwhile is not refused"


def test_files_of_a_holder_that_is_released_are_removed(tmp_path: Path) -> None:
    """By the next process, too. What another holder shares with it is written again with that one's next state."""
    with running(tmp_path) as first:
        first.insert(PROMPT, holder="r")
        first.insert((*PROMPT[:5], 50), holder="s")
        assert first.disk.holders() == {"r", "s"}
    with running(tmp_path) as second:
        assert second.covered((*PROMPT[:5], 50, 51)) == 6
        second.disk.release({"r"})
        second.cache.release({"r"})
        second.disk.settle()
        assert second.disk.holders() == {"s"} == second.cache.holders
        assert second.covered((*PROMPT, 99)) == 5, "the other one has these in memory"
        second.insert((*PROMPT[:5], 50, 51), holder="t")
    with running(tmp_path) as third:
        assert third.covered((*PROMPT[:5], 50, 51, 52)) == 7
        assert third.covered((*PROMPT, 99)) == 5
        assert (third.disk.holders(), third.cache.holders) == ({"s", "t"}, {"s", "t"})
        third.disk.release({"s", "t"})
        third.disk.settle()
        assert files(tmp_path) == []
