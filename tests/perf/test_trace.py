"""The trace of the benchmark matches the engine, and its causes add up."""

import importlib
import textwrap
from pathlib import Path

import pytest

from tests.perf.trace.points import DECODER, EMISSIONS, FACTORIES, FUNCTIONS, GENERATOR, ROOTS
from tests.perf.trace.table import LOCK_IN_MLX, LOCK_OUTSIDE, WORK_IN_MLX, StepTimes, Times, TraceDirectory
from tests.processes import run_python

POINTS = [*ROOTS, GENERATOR, DECODER, *FACTORIES, *FUNCTIONS, *EMISSIONS]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: f"{point.module}.{point.name}")
def test_every_traced_function_exists(point: object) -> None:
    """Otherwise the time of a renamed function would be counted under another cause."""
    assert isinstance(point, tuple)
    module, name, _ = point
    function = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    assert callable(function)


def test_a_traced_process_counts_its_steps_by_phase_and_size(tmp_path: Path) -> None:
    """A stand-in for mlx-lm is patched when it is imported; its counts are written at the end."""
    (tmp_path / "mlx_lm").mkdir()
    (tmp_path / "mlx_lm" / "__init__.py").touch()
    (tmp_path / "mlx_lm" / "generate.py").write_text(
        textwrap.dedent("""
        from types import SimpleNamespace
        class BatchGenerator:
            def next(self):
                return [], [SimpleNamespace(uid=number, finish_reason=None) for number in range(3)]
    """)
    )
    code = """
        from mlx_lm.generate import BatchGenerator
        from tests.perf.engines import bare, child
        for _ in range(5):
            bare.step(BatchGenerator(), child.Meter(3), set())
    """
    directory = TraceDirectory(tmp_path / "trace")
    directory.begin("greedy/3")
    environment = {**directory.environment, "PYTHONPATH": f"{tmp_path}:{directory.environment['PYTHONPATH']}"}
    done = run_python("-c", textwrap.dedent(code), data_dir=tmp_path, seconds=60, **environment)
    assert done.returncode == 0, done.stderr
    times = directory.step_times("greedy/3", 3)
    assert times is not None
    assert times.steps == 5
    assert 0 < times.mlx < times.wall
    assert directory.step_times("greedy/3", 2) is None


def test_time_outside_mlx_is_the_difference_to_a_bare_step() -> None:
    """The causes add up to the difference of the two steps."""
    mlx = "MLX: waiting for the step"
    bare = StepTimes(10, {mlx: Times(1.0, 0.2)})
    ours = StepTimes(10, {mlx: Times(1.5, 0.3), "sink": Times(0.3, 0.1), "idle": Times(9.0, 0.0)})
    outside = ours.outside(bare)
    assert outside == pytest.approx({LOCK_IN_MLX: 0.4, WORK_IN_MLX: 0.1, LOCK_OUTSIDE: 0.2, "sink": 0.1})
    assert sum(outside.values()) == pytest.approx(ours.wall - bare.wall)
