"""Gives MLX a fast BLAS on a Linux CPU.

The `mlx-cpu` wheel links the reference BLAS, fifty times slower than OpenBLAS in fp32. `libmlx.so` imports three
symbols from it; a library that is loaded globally before the first `import mlx` provides them instead. scipy-openblas32
has OpenBLAS with prefixed names, so a copy with plain names is made with patchelf, once.
"""

import ctypes
import importlib.metadata
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from inference.memory import computes_on_cpu

log = logging.getLogger(__name__)

_loaded: list[str] = []
_THREADS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_SYMBOLS = ("cblas_sgemm", "cblas_dgemm", "cblas_cgemm")


def preload_openblas(cache_dir: Path | str) -> str | None:
    """Load OpenBLAS for MLX to find. Returns the version loaded, or None where it doesn't apply or isn't available.

    Applies on Linux with the `mlx-cpu` backend, before mlx is imported. Never raises: MLX works without it, slower, and
    one warning is logged. `cache_dir` keeps the renamed library, one file per version, replaced atomically.

    It uses half the cores unless OPENBLAS_NUM_THREADS is set: its threads wait by spinning, so that with one on every
    core another busy thread, such as the web server's, makes a step five times slower (measured on 2 cores,
    where one thread alone is as fast as two).
    """
    if not computes_on_cpu() or _version("mlx-cpu") is None:
        return None
    if _loaded:
        return _loaded[0]
    if "mlx.core" in sys.modules:
        log.warning("MLX was imported before OpenBLAS was loaded, so prompts are read about ten times slower.")
        return None
    try:
        version = importlib.metadata.version("scipy-openblas32")
        library = Path(cache_dir) / f"libopenblas-{version}.so"
        if not library.exists():
            _rename_symbols(library)
        loaded = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        if not any(name in os.environ for name in _THREADS):
            loaded.scipy_openblas_set_num_threads(max(1, len(os.sched_getaffinity(0)) // 2))
    except Exception as error:
        log.warning("OpenBLAS can't be loaded (%s), so prompts are read about ten times slower.", error)
        return None
    _loaded.append(version)
    return version


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


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
