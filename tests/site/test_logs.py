"""The format of log lines."""

import json
from pathlib import Path
from typing import Any

from tests.processes import run_python

SETUP = "import django, logging, structlog; django.setup()\n"


def logged(code: str, data_dir: Path) -> list[dict[str, Any]]:
    """The lines that a process with JSON logs writes to stderr."""
    ended = run_python("-c", SETUP + code, data_dir=data_dir, RESPONSES_LOG_FORMAT="json")
    return [json.loads(line) for line in ended.stderr.splitlines()]


def test_both_logging_libraries_give_one_format(tmp_path: Path) -> None:
    """Lines of structlog and of the standard library both have the request id and an ISO timestamp."""
    code = """
with structlog.contextvars.bound_contextvars(request_id="req_1"):
    structlog.get_logger("responses_api.x").info("event.name", count=2)
    logging.getLogger("other").warning("%s words", "two")
"""
    first, second = logged(code, tmp_path)
    assert (first["event"], first["count"], first["request_id"], first["level"]) == ("event.name", 2, "req_1", "info")
    assert (second["event"], second["request_id"], second["logger"]) == ("two words", "req_1", "other")
    assert first.keys() - {"count"} == second.keys()


def test_an_exception_is_part_of_its_line(tmp_path: Path) -> None:
    """A traceback never breaks a line of JSON."""
    code = """
try:
    raise RuntimeError("boom")
except RuntimeError:
    structlog.get_logger("x").exception("event.failed")
"""
    (line,) = logged(code, tmp_path)
    assert "RuntimeError: boom" in line["exception"]


def test_noise_of_libraries_is_left_out(tmp_path: Path) -> None:
    """Access lines and connections are noise at the default level."""
    code = """
logging.getLogger("daphne.http_protocol").info("GET /")
logging.getLogger("celery.worker").info("connected")
"""
    assert logged(code, tmp_path) == []
