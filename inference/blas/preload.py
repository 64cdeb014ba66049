"""Gives MLX a fast BLAS on a Linux CPU.

The `mlx-cpu` wheel links the reference BLAS, fifty times slower than OpenBLAS in fp32. `libmlx.so` imports three
symbols from it; libraries that are loaded globally before the first `import mlx` provide them instead: OpenBLAS, and in
front of it sgemm.c for products with few rows, where there is a C compiler.
"""

import ctypes
import logging
import os
import sys
from pathlib import Path

from inference.memory import computes_on_cpu, cores_of_process, is_installed

from .openblas import renamed_openblas
from .sgemm import compiled_sgemm

log = logging.getLogger(__name__)

_THREADS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_MOST_THREADS = 16
"""More threads than this wait for the memory, not for each other."""

_loaded: list[ctypes.CDLL] = []


def preload_blas(directory: Path | str) -> bool:
    """Load what makes MLX fast on this machine, if anything does. Returns whether it is loaded.

    Applies on Linux with the `mlx-cpu` backend, before mlx is imported. Never raises: MLX works without it, slower, and
    a warning is logged. `directory` keeps the libraries made, replaced atomically.

    At most OPENBLAS_NUM_THREADS threads compute. Unless it is set, as many as there are cores if they are those of
    sgemm.c, which work for as long as that pays, else half as many: the threads of OpenBLAS wait by spinning, so with
    one on every core any other busy thread makes a step five times slower.
    """
    directory = Path(directory)
    if not computes_on_cpu() or not is_installed("mlx-cpu"):
        return False
    if _loaded:
        return True
    if "mlx.core" in sys.modules:
        log.warning("MLX was imported before OpenBLAS was loaded, so prompts are read about ten times slower.")
        return False
    try:
        path = renamed_openblas(directory)
        first = _load_compiled_sgemm(directory)
        blas = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except Exception as error:
        log.warning("OpenBLAS can't be loaded (%s), so prompts are read about ten times slower.", error)
        return False
    cores = min(cores_of_process(), _MOST_THREADS)
    stated = _stated_threads()
    if first is not None:
        blas.scipy_openblas_set_num_threads(1)
        first.sgemm_start(blas.cblas_sgemm, stated or cores)
        _loaded.append(first)
    elif stated is None:
        blas.scipy_openblas_set_num_threads(max(1, cores // 2))
    _loaded.append(blas)
    return True


def _load_compiled_sgemm(directory: Path) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(str(compiled_sgemm(directory)), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        log.warning("The products of small batches are slow (%s). Install a C compiler, such as gcc.", error)
        return None


def _stated_threads() -> int | None:
    """What the first of OpenBLAS's variables says that has a number."""
    for name in _THREADS:
        value = os.environ.get(name, "")
        if value.isdecimal() and int(value):
            return int(value)
    return None
