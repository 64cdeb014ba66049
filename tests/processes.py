"""Processes of a test run: pytest's own, possibly several, and those that tests start."""

import os
import subprocess
import sys
from pathlib import Path

from responses_site.setting_kinds import BASE_DIR


def own_share(numbers: range) -> range:
    """The part of these numbers that belongs to this process, where pytest-xdist runs several."""
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    size = len(numbers) // count
    return numbers[number * size : (number + 1) * size]


def coverage_environment() -> dict[str, str]:
    """The variable that makes coverage measure a process from its start; empty when the tests aren't measured."""
    return {name: value for name, value in os.environ.items() if name == "COVERAGE_PROCESS_CONFIG"}


def run_python(
    *arguments: str, data_dir: Path, seconds: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in the checkout with these settings and no others. Returns the ended process, its output as text."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=BASE_DIR,
        env={
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "responses_site.settings",
            "RESPONSES_DATA_DIR": str(data_dir),
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
