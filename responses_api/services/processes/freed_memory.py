"""Gives memory that was freed back to the system: glibc keeps it, and large requests would seem to leave it behind."""

import ctypes
import resource
import sys
from pathlib import Path

GROWTH_BYTES = 64 << 20
"""Resident memory has to have grown by so much before it is worth a look."""
ARENAS = 2
"""Of glibc's allocator, which has eight per processor otherwise, each with holes of its own. Most of what the server
allocates is allocated under the interpreter's lock."""
_M_ARENA_MAX = -8  # from malloc.h

_STATM = Path("/proc/self/statm")
_least_resident = 0


def limit_arenas() -> None:
    """Have few arenas; nothing where the C library isn't glibc. To be called before threads allocate much."""
    if mallopt := _glibc("mallopt"):
        mallopt(_M_ARENA_MAX, ARENAS)


def return_freed_memory() -> None:
    """Return what is free if the process has grown since the last time. Takes some milliseconds."""
    global _least_resident
    malloc_trim = _glibc("malloc_trim")
    if malloc_trim is None:
        return
    if resident_bytes() > _least_resident + GROWTH_BYTES:
        malloc_trim(0)
        _least_resident = resident_bytes()
    else:
        _least_resident = min(_least_resident, resident_bytes())


def _glibc(name: str) -> "ctypes._NamedFuncPointer | None":
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def resident_bytes() -> int:
    """Bytes of this process that are in memory. Linux only."""
    return int(_STATM.read_text().split()[1]) * resource.getpagesize()
