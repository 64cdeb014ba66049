"""The memory of this machine: the smallest limit counts."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inference.memory import cores_of_process, machine, memory_for_models

PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The control groups of a Linux machine without a GPU."""
    monkeypatch.setattr(machine, "_CGROUPS", tmp_path)
    monkeypatch.setattr(machine, "_own_group", lambda: "a/b")
    monkeypatch.setattr(machine, "computes_on_cpu", lambda: True)
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "a" / "b").mkdir(parents=True)
    return tmp_path


def test_it_is_three_quarters_of_what_this_process_may_use(groups: Path) -> None:
    """Of the machine's memory, or of its container's limit, or of that of a group above."""
    assert memory_for_models() == int(0.75 * PHYSICAL)
    (groups / "a" / "b" / "memory.max").write_text("max\n")
    assert memory_for_models() == int(0.75 * PHYSICAL)
    (groups / "a" / "b" / "memory.max").write_text("400000000\n")
    assert memory_for_models() == 300_000_000
    (groups / "a" / "memory.max").write_text("200000000\n")
    assert memory_for_models() == 150_000_000
    (groups / "memory").mkdir()
    (groups / "memory" / "memory.limit_in_bytes").write_text("100000000\n")
    assert memory_for_models() == 75_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_cores_are_those_of_the_process_hyperthreads_counted_once(
    groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as its container, or a group above, may use them."""
    monkeypatch.setattr(machine, "_PROCESSORS", groups)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 4, 5, 9})
    for number, siblings in ((0, "0,4"), (4, "0,4"), (1, "1,5"), (5, "1,5")):
        (groups / f"cpu{number}" / "topology").mkdir(parents=True)
        (groups / f"cpu{number}" / "topology" / "thread_siblings_list").write_text(siblings)
    assert cores_of_process() == 3
    (groups / "a" / "b" / "cpu.max").write_text("max 100000\n")
    (groups / "a" / "cpu.max").write_text("250000 100000\n")
    assert cores_of_process() == 2
    (groups / "a" / "b" / "cpu.max").write_text("50000 100000\n")
    assert cores_of_process() == 1


def test_what_is_stated_counts(groups: Path) -> None:
    assert memory_for_models(5) == 5


@pytest.mark.parametrize(
    ("facts", "memory"),
    [({"max_recommended_working_set_size": 11}, 11), ({"total_memory": 100}, 75), ({}, int(0.75 * PHYSICAL))],
)
def test_a_gpu_is_asked(groups: Path, monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], memory: int) -> None:
    """Metal recommends a size; of other GPUs the same part is used as of a machine's memory."""
    monkeypatch.setattr(machine, "computes_on_cpu", lambda: False)
    core = SimpleNamespace(device_info=lambda: facts)
    monkeypatch.setitem(sys.modules, "mlx", SimpleNamespace(core=core))
    monkeypatch.setitem(sys.modules, "mlx.core", core)
    assert memory_for_models() == memory
