"""Grammars of callers are checked within a time budget, in processes that may end at any time."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from inference.constraints.checker import TOO_LARGE, TOO_SLOW, Checker, CheckInterrupted
from inference.types import Constraint

AMBIGUOUS = "start: e\ne: e e | e e e | /[a-z ]/ | " + "e e | " * 2000
"""12 KB that take minutes."""


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    """One process, and a short budget."""
    checker = Checker(processes=1, seconds=0.3)
    yield checker
    checker.close()


def lark(text: str) -> Constraint:
    return Constraint(kind="lark", text=text)


def test_a_grammar_that_takes_too_long_is_refused_and_the_next_one_is_checked(checker: Checker) -> None:
    """The budget ends llguidance's work, which nothing inside its process could end."""
    assert checker.check(lark(AMBIGUOUS)).error == TOO_SLOW
    assert checker.check(lark('start: "a"')).error == ""
    assert "unknown" in checker.check(lark("start: missing")).error
    assert checker.check(Constraint(kind="regex", text="[a-z]+")).error == ""


def test_many_checks_share_the_processes(checker: Checker) -> None:
    """Each caller gets the answer for its own grammar."""
    grammars = [lark('start: "a"'), lark("start: missing")] * 20
    with ThreadPoolExecutor(8) as threads:
        assert [not checked.error for checked in threads.map(checker.check, grammars)] == [True, False] * 20


@pytest.mark.parametrize(
    ("ending", "error"), [(signal.SIGABRT, TOO_LARGE), (signal.SIGKILL, None), (signal.SIGTERM, None)]
)
def test_a_process_that_ends_is_replaced(ending: signal.Signals, error: str | None) -> None:
    """During a check or between two. If it was killed from outside, the grammar is not to blame."""
    checker = Checker(processes=1, seconds=60)
    assert checker.check(lark('start: "a"')).error == ""
    with ThreadPoolExecutor() as threads:
        checking = threads.submit(checker.check, lark(AMBIGUOUS))
        time.sleep(0.2)
        os.kill(newest_child(), ending)
        if error is None:
            with pytest.raises(CheckInterrupted):
                checking.result()
        else:
            assert checking.result().error == error
    assert checker.check(lark('start: "a"')).error == ""
    checker.close()


def test_a_process_serves_many_checks() -> None:
    """However large the server is that has started it."""
    ballast = bytes([1]) * (300 << 20)
    checker = Checker(processes=1)
    processes = set()
    for letter in "ab":
        assert checker.check(lark(f'start: "{letter}"')).error == ""
        processes.add(newest_child())
    checker.close()
    assert len(processes) == 1
    assert ballast


def newest_child() -> int:
    """The check process that this process started last."""
    found = subprocess.run(
        ["pgrep", "-n", "-P", str(os.getpid()), "-f", "check_process"], capture_output=True, text=True, check=True
    )
    return int(found.stdout)
