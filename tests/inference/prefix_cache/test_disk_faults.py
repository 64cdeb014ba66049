"""What becomes of the second tier when files are damaged, the disk fails or is full, or a process dies."""

import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from inference.prefix_cache import disk_cache, sealed_file, states
from inference.prefix_cache.directory import Directory
from inference.prefix_cache.token_tree import pack

from .disk_process import PROMPT, Process, files, running, size
from .fakes import new_state


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content[:20],
        lambda content: b"",
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        lambda content: content[:60] + bytes([content[60] ^ 1]) + content[61:],
        lambda content: content + b"more",
        lambda content: b"another\n" + content[8:],
    ],
    ids=["half", "start", "empty", "end altered", "header altered", "longer", "foreign"],
)
@pytest.mark.parametrize("moment", ["while it is away", "while it runs"])
def test_a_file_that_is_torn_or_altered_is_ignored_and_removed(tmp_path: Path, damage: Any, moment: str) -> None:
    """The state before it is resumed; what continued it goes too, once it is seen."""
    with patch.object(states, "EDGE_TOKENS", 4):
        with running(tmp_path) as first:
            first.insert(PROMPT)
        ends = {stored.end: stored.path for stored in first.disk._index._paths.values()}  # type: ignore[union-attr]
        second = None if moment == "while it is away" else Process(tmp_path)
        ends[8].write_bytes(damage(ends[8].read_bytes()))
        second = second or Process(tmp_path)
        assert second.covered((*PROMPT, 99)) == 4
        assert not ends[8].exists()
        second.close()
        with running(tmp_path) as third:
            assert third.covered((*PROMPT, 99)) == 4
            assert files(tmp_path) == [ends[4]]
            third.insert(PROMPT)
        with running(tmp_path) as fourth:
            assert fourth.covered((*PROMPT, 99)) == len(PROMPT), "and it is written anew"


def test_a_file_that_another_process_removed_is_a_miss(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        first.insert(PROMPT)
    with running(tmp_path) as second:
        files(tmp_path)[0].unlink()
        assert second.covered((*PROMPT, 99)) == 0
        assert second.cache.read("a", (*PROMPT, 99)) is None


def test_a_process_that_dies_while_it_writes_leaves_nothing_that_is_read(tmp_path: Path) -> None:
    """Its unfinished file counts, until it is old enough to be nobody's."""
    with running(tmp_path) as first:
        first.insert(PROMPT)
    (file,) = files(tmp_path)
    torn = file.rename(file.with_name(file.name + sealed_file.TEMPORARY))
    with running(tmp_path) as second:
        assert second.covered((*PROMPT, 99)) == 0
        assert (torn.exists(), second.disk.nbytes) == (True, torn.stat().st_size)
    os.utime(torn, (0, 0))
    with running(tmp_path) as third:
        assert third.disk.nbytes == 0
    assert files(tmp_path) == []


def test_what_is_not_of_the_cache_is_left_alone(tmp_path: Path) -> None:
    own = [tmp_path / "notes.txt", tmp_path / "photos" / "one.state", tmp_path / ("0" * 32) / "letter.txt"]
    for file in own:
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    with running(tmp_path, max_bytes=1000) as process:
        for number in range(20):
            process.insert((number, *PROMPT))
        process.disk.forget("a")
        process.disk.retain([])
        process.disk.settle()
    assert files(tmp_path) == sorted(own)


def test_it_stays_within_its_bytes_and_the_longest_unused_goes_first(tmp_path: Path) -> None:
    """The end of a sequence before its beginning. The files of other models and processes count."""
    with running(tmp_path, model="n") as other:
        other.insert((90, 91, 92))
    with running(tmp_path, memory=8 * len(PROMPT)) as process, patch.object(states, "EDGE_TOKENS", 4):
        process.insert(PROMPT)
        one = size(tmp_path)
        process.disk._directory.max_bytes = 4 * one
        for number in range(20, 30):
            process.insert((number, *PROMPT[1:]))
            assert process.covered((*PROMPT, 99)) == len(PROMPT), "it was used each time"
            assert size(tmp_path) <= 4 * one
        assert process.disk.evictions > 0
        assert process.disk.nbytes == size(tmp_path)
        assert process.covered((20, *PROMPT[1:], 99)) == 0
    with running(tmp_path, model="n") as other:
        assert other.covered((90, 91, 92, 93)) == 0


def test_of_one_sequence_the_end_goes_first(tmp_path: Path) -> None:
    """What is left can still be resumed."""
    with patch.object(states, "EDGE_TOKENS", 4):
        with running(tmp_path) as process:
            process.insert(PROMPT)
            process.disk._directory.max_bytes = size(tmp_path) + 64  # one file has to go
            process.insert((77,))
        with running(tmp_path) as process:
            assert process.covered((*PROMPT, 99)) == 8
            assert process.covered((77, 78)) == 1


def test_a_disk_that_fails_costs_no_more_than_the_state(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "cache").write_text("in the way")
    with running(tmp_path / "cache") as process:
        process.insert(PROMPT)
        assert process.covered((*PROMPT, 99)) == len(PROMPT)
        assert process.disk.find("a", pack(PROMPT), 99) == 0
    assert "can't be written" in caplog.text
    assert str(tmp_path) not in caplog.text


def test_a_disk_that_is_slow_makes_nobody_wait_and_takes_no_memory(tmp_path: Path) -> None:
    """What would wait beyond a bound is left out, with all that continues it."""
    with running(tmp_path) as process, patch.object(disk_cache, "MOST_PENDING_BYTES", 100):
        with patch.object(process.disk, "_write"):
            process.cache.insert("a", PROMPT, new_state("full", PROMPT), on_disk=True)
            process.cache.insert("a", (*PROMPT, 12, 13), new_state("full", (*PROMPT, 12, 13)), on_disk=True)
        assert process.disk._pending == 8 * len(PROMPT)
        assert process.disk.find("a", pack(PROMPT), 99) == len(PROMPT)


def test_a_scope_that_is_forgotten_while_it_is_written_leaves_no_file(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        whole = Directory.prepare

        def forget_meanwhile(directory: Directory, scope_name: str) -> None:
            whole(directory, scope_name)
            process.disk._forgotten.add(scope_name)

        with patch.object(Directory, "prepare", forget_meanwhile):
            process.insert(PROMPT)
        assert files(tmp_path) == []


def test_large_arrays_are_sealed_in_parts(tmp_path: Path) -> None:
    with patch.object(sealed_file, "PART_BYTES", 10):
        with running(tmp_path) as first:
            first.insert(PROMPT)
        with running(tmp_path) as second:
            assert second.covered((*PROMPT, 99)) == len(PROMPT)
