"""Compiles sgemm.c and products.h for this machine's processor, once."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

_SOURCE = Path(__file__).with_name("sgemm.c")
_OPTIONS = ("-O3", "-march=native", "-std=gnu11", "-shared", "-fPIC", "-pthread")


def compiled_sgemm(directory: Path) -> Path:
    """The library, kept in `directory`, one file per source and kind of processor. Raises OSError if there is none."""
    code = b"".join(file.read_bytes() for file in (_SOURCE, _SOURCE.with_name("products.h")))
    library = directory / f"libsgemm-{hashlib.sha256(code + _processor()).hexdigest()[:16]}.so"
    if not library.exists():
        _compile(library)
    return library


def _compile(target: Path) -> None:
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise FileNotFoundError("there is no C compiler")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        made = Path(work) / target.name
        command = [compiler, *_OPTIONS, "-o", str(made), str(_SOURCE)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120)
        except subprocess.SubprocessError as error:
            raise OSError(f"{compiler} failed") from error
        made.replace(target)


def _processor() -> bytes:
    """What tells kinds of processors apart: the lines about the first one, but for those that change."""
    first = Path("/proc/cpuinfo").read_bytes().partition(b"\n\n")[0]
    varying = (b"cpu MHz", b"bogomips", b"BogoMIPS")
    return b"\n".join(line for line in first.splitlines() if not line.startswith(varying))
