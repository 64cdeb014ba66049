"""Memory of large requests is returned to the system."""

import sys

import pytest

from responses_api.services.processes import freed_memory
from responses_api.services.processes.freed_memory import GROWTH_BYTES, return_freed_memory


@pytest.mark.skipif(sys.platform != "linux", reason="needs glibc: elsewhere return_freed_memory does nothing")
def test_freed_memory_is_returned() -> None:
    """Even between blocks in use, which the allocator would keep."""
    return_freed_memory()
    before = freed_memory.resident_bytes()
    blocks = [bytes(10_000) for _ in range(8 * GROWTH_BYTES // 10_000)]
    survivors = blocks[::50]
    del blocks
    kept = freed_memory.resident_bytes() - before
    assert kept > 4 * GROWTH_BYTES
    return_freed_memory()
    assert freed_memory.resident_bytes() - before < kept / 2
    assert len(survivors) > 100
