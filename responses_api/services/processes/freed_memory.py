"""Returns freed memory to the system: glibc and libpq retain it, so that large requests would look like a leak."""

import ctypes
import gc
import resource
import sys
from pathlib import Path

from responses_api.database.pool import renew_pooled_connections

GROWTH_BYTES = 32 << 20
"""Growth of the resident memory after which freed memory is returned."""
ARENAS = 2
"""Arenas of glibc's allocator, eight per processor by default, each of which fragments on its own. Two are enough,
since the server allocates nearly all memory under the interpreter's lock."""
RETAINED_BYTES = 256 << 20
"""Free memory that an arena keeps until the next :func:`return_freed_memory`. By default little more than the largest
array is kept, so that the memory of each step of an engine comes from the system again, page by page."""
MAPPED_BYTES = 32 << 20
"""Arrays from this size on are returned to the system at once."""
_M_ARENA_MAX, _M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -8, -1, -3  # from malloc.h

_STATM = Path("/proc/self/statm")
_least_resident = 0


def tune_allocator() -> None:
    """Limit the number of arenas, and have them keep some of what is freed, if the C library is glibc. To be called
    before threads allocate much.
    """
    if mallopt := _glibc("mallopt"):
        mallopt(_M_ARENA_MAX, ARENAS)
        mallopt(_M_TRIM_THRESHOLD, RETAINED_BYTES)
        mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)


def return_freed_memory(*, at_once: bool = False) -> None:
    """Return free memory if the process has grown by ``GROWTH_BYTES`` since the last time, or ``at_once``. Takes some
    milliseconds.

    Cycles, such as an exception and the frames that hold a large request, are collected first: the collector itself
    comes only when the number of objects has grown by a quarter, however large they are.
    """
    global _least_resident
    malloc_trim = _glibc("malloc_trim")
    if malloc_trim is None:
        return
    if at_once or resident_bytes() > _least_resident + GROWTH_BYTES:
        renew_pooled_connections()
        gc.collect()
        malloc_trim(0)
        _least_resident = resident_bytes()
    else:
        _least_resident = min(_least_resident, resident_bytes())


def _glibc(name: str) -> "ctypes._NamedFuncPointer | None":
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def resident_bytes() -> int:
    """Resident memory of this process in bytes. Linux only."""
    return int(_STATM.read_text().split()[1]) * resource.getpagesize()
