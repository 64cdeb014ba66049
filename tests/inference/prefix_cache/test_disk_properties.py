"""Random steps of a process with both tiers, over restarts."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.prefix_cache import states

from .disk_process import Process, size
from .fakes import KINDS, Tokens

SEQUENCES = st.lists(st.integers(0, 1), min_size=1, max_size=9).map(tuple)
STEP = st.tuples(
    st.sampled_from(["insert", "insert", "only in memory", "fetch", "fetch", "forget", "restart"]),
    st.sampled_from(["a", "b"]),
    SEQUENCES,
)


@given(kind=st.sampled_from(sorted(KINDS)), steps=st.lists(STEP, max_size=20), room=st.sampled_from([10**9, 8000]))
def test_over_restarts_states_are_whole_or_not_there(
    tmp_path_factory: pytest.TempPathFactory, kind: str, steps: list[tuple[str, str, Tokens]], room: int
) -> None:
    """Random steps: what is found is right; with room enough, what was answered before is found after a restart; what
    was not to be on the disk, or is forgotten, is not.
    """
    directory = tmp_path_factory.mktemp("cache")
    options = {"max_bytes": room, "memory": 300}
    process = Process(directory, kind, **options)
    written: set[tuple[str, Tokens]] = set()
    forgotten: set[str] = set()
    with patch.object(states, "EDGE_TOKENS", 4):
        for step, scope, tokens in steps:
            if step == "fetch":
                process.covered(tokens, scope=scope)
            elif step == "forget":
                process.cache.forget(scope)
                process.disk.forget(scope)
                process.disk.settle()
                forgotten.add(scope)
                written = {(owner, known) for owner, known in written if owner != scope}
            elif step == "restart":
                process.close()
                process = Process(directory, kind, **options)
                forgotten.clear()
            else:
                process.insert(tokens, scope=scope, on_disk=step == "insert")
                if step == "insert" and scope not in forgotten:
                    written.add((scope, tokens))
            assert size(directory) <= room
    process.close()
    process = Process(directory, kind, **{**options, "memory": 10**9})
    prefixes = {(scope, tokens[:end]) for scope, tokens in written for end in range(1, len(tokens) + 1)}
    for scope, tokens in written if room == 10**9 else ():
        assert process.covered((*tokens, 9), scope=scope) == len(tokens)
    for _, scope, tokens in steps:
        covered = process.covered((*tokens, 9), scope=scope)
        assert covered == 0 or (scope, tokens[:covered]) in prefixes
    process.close()
