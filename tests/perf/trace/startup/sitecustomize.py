"""Imported by Python at its start if this directory is on `PYTHONPATH`: observes the processes of a benchmark."""

import os
from pathlib import Path

if "BENCH_TRACE_DIR" in os.environ:
    from tests.perf.trace import tracer

    tracer.install(Path(os.environ["BENCH_TRACE_DIR"]))
if "BENCH_EMISSIONS_DIR" in os.environ:
    from tests.perf.trace import emissions

    emissions.install(Path(os.environ["BENCH_EMISSIONS_DIR"]))
