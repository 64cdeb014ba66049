"""A fast BLAS is put before MLX's own, once; its products are right; its absence is a warning."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a Linux CPU")

PROGRAM = """
import logging, sys
from pathlib import Path
logging.basicConfig(format="%(message)s", stream=sys.stdout)
from inference.blas import preload_blas
if sys.argv[2] == "late":
    import mlx.core
print([preload_blas(Path(sys.argv[1])) for _ in range(2)])
import mlx.core as mx
print(mx.all(mx.ones((64, 64)) @ mx.ones((64, 64)) == 64).item())
"""
PRODUCTS = """
import sys
from itertools import product
from pathlib import Path
from inference.blas import preload_blas
assert preload_blas(Path(sys.argv[1]))
import mlx.core as mx, numpy as np

made = np.random.default_rng(0)
def numbers(*shape):
    return made.standard_normal(shape, dtype=np.float32)

ROWS = 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 40, 300, 1100
SIZES = (1, 1), (7, 33), (100, 64), (64, 300), (1000, 577)
for m, (n, k), swap_a, swap_b in product(ROWS, SIZES, (False, True), (False, True)):
    a, b, c = numbers(m, k), numbers(k, n), numbers(m, n)
    exact = a.astype(float) @ b.astype(float)
    x = mx.array(a.T.copy()).T if swap_a else mx.array(a)
    y = mx.array(b.T.copy()).T if swap_b else mx.array(b)
    for result, should in ((x @ y, exact), (mx.addmm(mx.array(c), x, y, 0.5, 2.0), exact / 2 + 2 * c)):
        error = float(np.abs(np.array(result) - should).max() / np.sqrt(k))
        assert error < 1e-5, (m, n, k, swap_a, swap_b, error)
print("right")
"""


def run(cache: Path, *arguments: str, program: str = PROGRAM, **environment: str) -> list[str]:
    command = [sys.executable, "-c", program, str(cache), *arguments]
    variables = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=variables).stdout.splitlines()


def test_it_is_loaded_and_kept_for_the_next_start(tmp_path: Path) -> None:
    assert run(tmp_path, "early") == ["[True, True]", "True"]
    made = {library: library.stat().st_mtime_ns for library in tmp_path.iterdir()}
    assert sorted(library.name.partition("-")[0] for library in made) == ["libopenblas", "libsgemm"]
    assert run(tmp_path, "early") == ["[True, True]", "True"]
    assert {library: library.stat().st_mtime_ns for library in tmp_path.iterdir()} == made


@pytest.mark.parametrize("threads", ["1", "3"])
def test_products_of_all_shapes_are_right(blas_cache: Path, threads: str) -> None:
    assert run(blas_cache, program=PRODUCTS, OPENBLAS_NUM_THREADS=threads) == ["right"]


def test_without_a_compiler_openblas_computes(tmp_path: Path) -> None:
    warning, *rest = run(tmp_path, "early", PATH=str(Path(sys.executable).parent))
    assert warning.startswith("The products of small batches are slow (")
    assert rest == ["[True, True]", "True"]
    (library,) = tmp_path.iterdir()
    assert library.name.startswith("libopenblas")


def test_too_late_is_a_warning(tmp_path: Path) -> None:
    warning, *rest = run(tmp_path, "late")
    assert "MLX was imported before OpenBLAS was loaded" in warning
    assert rest[-1] == "True"


def test_a_directory_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    warning, *rest = run(tmp_path / "file", "early")
    assert warning.startswith("OpenBLAS can't be loaded (")
    assert rest[-1] == "True"
