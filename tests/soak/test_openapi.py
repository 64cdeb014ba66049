"""Schemathesis with the served document: no 5xx, no undocumented status, all answers as documented."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from responses_site.setting_kinds import BASE_DIR
from tests.live.server import LiveServer

from . import LONG, SECONDS, TIMEOUT

REQUEST_SECONDS = 30
SHORT = ("--max-examples", "5", "--phases", "examples,fuzzing,stateful")
# The server needs no key, and a schema can't say which ids exist or which parameters exclude each other.
EXCLUDED_CHECKS = ("ignored_auth", "positive_data_acceptance")


def run(server: LiveServer, directory: Path) -> tuple[str, dict[str, Any], dict[str, dict[str, int]]]:
    """Run Schemathesis with one client. Returns its output, its report, and the statuses of every operation."""
    # From a file, as Schemathesis skips the operation from which it reads the document.
    document, report, figures = directory / "openapi.json", directory / "report.json", directory / "figures.json"
    document.write_bytes(httpx.get(f"{server.url}/openapi.json").raise_for_status().content)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--no-color", "run", str(document)),
            *("--url", server.url.removesuffix("/v1")),
            *(["--max-time", str(max(1, round(SECONDS)))] if LONG else SHORT),
            *("--checks", "all", "--exclude-checks", ",".join(EXCLUDED_CHECKS)),
            *("--continue-on-failure", "--request-timeout", str(REQUEST_SECONDS)),
            *("--report", "json", "--report-json-path", str(report)),
            *(["--generation-deterministic"] if "CI" in os.environ else []),
        ],
        cwd=directory,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(BASE_DIR),
            "SCHEMATHESIS_HOOKS": "tests.soak.schemathesis_hooks",
            "SOAK_FIGURES": str(figures),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert report.exists(), done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout, json.loads(report.read_text()), json.loads(figures.read_text())


@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize("server", ["embedded"], indirect=True)
def test_answers_match_the_document(server: LiveServer, tmp_path: Path) -> None:
    """Every operation is requested, and no check fails."""
    output, report, figures = run(server, tmp_path)
    for operation, statuses in sorted(figures.items()):
        print(f"{operation:60} {statuses}")
    print(f"{report['test_cases']['generated']} cases in {report['running_time']:.0f} s, {report['operations']}")
    assert report["exit_code"] == 0, output
    served = httpx.get(f"{server.url}/openapi.json").json()
    operations = {f"{method.upper()} {path}" for path, methods in served["paths"].items() for method in methods}
    assert set(figures) == operations
    # Otherwise only refusals would have been tested.
    for operation in ("POST /v1/responses", "POST /v1/responses/input_tokens", "POST /v1/conversations"):
        assert figures[operation].get("200"), figures[operation]
    if LONG:
        assert all(statuses.get("200") for statuses in figures.values()), figures
    assert "Traceback" not in server.log.read_text()
