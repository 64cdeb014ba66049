"""Python imports this at its start where the directory is on `PYTHONPATH`: traces the processes of a benchmark."""

import os
from pathlib import Path

if "BENCH_TRACE_DIR" in os.environ:
    from tests.perf.trace.tracer import install

    install(Path(os.environ["BENCH_TRACE_DIR"]))
