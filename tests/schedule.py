"""How several processes (`pytest -n 2`) share the tests: file by file, the longest first.

Files that need the same expensive fixture, the default model or the clients' environment, run in one process:
each process would make its own, and two models on one machine's cores are slower than one.
"""

from pathlib import PurePosixPath

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

TOGETHER = {
    "tests/clients": "model",
    "tests/inference/engine": "model",
    "tests/live/generation/test_real_model.py": "model",
    "tests/soak/test_constraints.py": "model",
}
LONGEST = ("tests/live/lifecycle/test_faults.py", *TOGETHER, "tests/live", "tests/soak")
"""Files and folders in the order in which they start; all others follow."""


class ByFile(LoadScopeScheduling):
    """Sends each process one file at a time."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return next((TOGETHER[place] for place in parents(file) if place in TOGETHER), file)


def longest_first(items: list[pytest.Item]) -> None:
    """Sort the tests so that processes end at about the same time."""
    places = {place: number for number, place in enumerate(LONGEST)}

    def number(item: pytest.Item) -> int:
        return min((places[place] for place in parents(item.nodeid.split("::", 1)[0]) if place in places), default=99)

    items.sort(key=number)


def parents(file: str) -> list[str]:
    """The file and the folders that it is in."""
    path = PurePosixPath(file)
    return [str(path), *map(str, path.parents)]
