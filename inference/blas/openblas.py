"""OpenBLAS under the names that MLX looks for.

scipy-openblas32 has OpenBLAS with prefixed names, so a copy with plain names is made with patchelf, once.
"""

import ctypes
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_SYMBOLS = ("cblas_sgemm", "cblas_dgemm", "cblas_cgemm")


def renamed_openblas(directory: Path) -> Path:
    """The library, kept in `directory`, one file per version. Raises an exception of some kind if there is none."""
    library = directory / f"libopenblas-{importlib.metadata.version('scipy-openblas32')}.so"
    if not library.exists():
        _rename_symbols(library)
    return library


def _rename_symbols(target: Path) -> None:
    """Write OpenBLAS with plain names to `target`, atomically."""
    import scipy_openblas32

    source = Path(scipy_openblas32.get_lib_dir()) / scipy_openblas32.get_library(fullname=True)
    patchelf = shutil.which("patchelf", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if patchelf is None:
        raise FileNotFoundError("the program patchelf is missing")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        copy, names = Path(work) / target.name, Path(work) / "names"
        shutil.copyfile(source, copy)
        names.write_text("".join(f"scipy_{symbol} {symbol}\n" for symbol in _SYMBOLS))
        command = [patchelf, "--rename-dynamic-symbols", str(names), str(copy)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        loaded = ctypes.CDLL(str(copy))
        if not all(hasattr(loaded, symbol) for symbol in _SYMBOLS):
            raise OSError("the renamed library lacks its symbols")
        copy.replace(target)
