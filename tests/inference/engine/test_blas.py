"""OpenBLAS is put before MLX's own, once, and its absence is a warning."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a Linux CPU")

PROGRAM = """
import logging, sys
from pathlib import Path
logging.basicConfig(format="%(message)s", stream=sys.stdout)
from inference.engine.blas import preload_openblas
if sys.argv[2] == "late":
    import mlx.core
print([preload_openblas(Path(sys.argv[1])) is not None for _ in range(2)])
import mlx.core as mx
print(mx.all(mx.ones((64, 64)) @ mx.ones((64, 64)) == 64).item())
"""


def run(cache: Path, when: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, str(cache), when]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_it_is_loaded_and_kept_for_the_next_start(tmp_path: Path) -> None:
    assert run(tmp_path, "early") == ["[True, True]", "True"]
    (library,) = tmp_path.iterdir()
    made = library.stat().st_mtime_ns
    assert run(tmp_path, "early") == ["[True, True]", "True"]
    assert library.stat().st_mtime_ns == made


def test_too_late_is_a_warning(tmp_path: Path) -> None:
    warning, *rest = run(tmp_path, "late")
    assert "MLX was imported before OpenBLAS was loaded" in warning
    assert rest[-1] == "True"


def test_a_directory_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    warning, *rest = run(tmp_path / "file", "early")
    assert warning.startswith("OpenBLAS can't be loaded (")
    assert rest[-1] == "True"
