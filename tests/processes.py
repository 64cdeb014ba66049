"""Python in the checkout as a process of its own, with the settings that a test gives and no others."""

import os
import subprocess
import sys
from pathlib import Path

from responses_site.setting_kinds import BASE_DIR


def run_python(
    *arguments: str, data_dir: Path, seconds: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The ended process, its output as text; `environment` holds settings."""
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
