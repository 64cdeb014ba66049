"""Shared fixtures, and a report of the tests that this machine could not run."""

import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest

from responses_api.counting import take_counts
from responses_api.selectors.models import forget_live_workers
from tests.live.launch import launch, migrated_database, migrated_file, real_server
from tests.real_model import default_model
from tests.schedule import ByFile, longest_first
from tests.services import amqp_url, postgres_server, postgres_url, redis_url
from tests.turns import ApiUser

__all__ = [
    "amqp_url",
    "default_model",
    "launch",
    "migrated_database",
    "migrated_file",
    "postgres_server",
    "postgres_url",
    "real_server",
    "redis_url",
]

# A test must not fail because the machine is slow.
hypothesis.settings.register_profile("responses", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("responses")

STRICT = os.environ.get("RESPONSES_TEST_STRICT") == "1"
MARKERS = {"postgres_server": "postgres", "redis_url": "redis"}


@pytest.fixture(autouse=True)
def fresh_memory() -> None:
    """Clears the workers and counts that earlier tests left in this process."""
    forget_live_workers()
    take_counts()


@pytest.fixture
def user() -> ApiUser:
    """A caller of the default project, with a worker that answers at once."""
    return ApiUser.make()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test with the service that it uses, so that `-m "not postgres"` leaves it out."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        longest_first(items)
    for item in items:
        for fixture, marker in MARKERS.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In strict mode a test whose requirement is missing fails."""
    report = yield
    if STRICT and (reason := missing_requirement(report)):
        report.outcome = "failed"
        report.longrepr = f"skipped under RESPONSES_TEST_STRICT=1: {reason}"
    return report


def missing_requirement(report: pytest.TestReport) -> str:
    """The reason of a skip for something that this machine lacks, else an empty string."""
    reason = (
        report.longrepr[2].removeprefix("Skipped: ") if report.skipped and isinstance(report.longrepr, tuple) else ""
    )
    return reason if reason.startswith("needs ") else ""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Counts the tests that this machine could not run, by reason."""
    reasons = Counter(filter(None, map(missing_requirement, terminalreporter.stats.get("skipped", []))))
    for reason, count in reasons.items():
        terminalreporter.write_line(f"Not run here: {count} tests, {reason}.", yellow=True)
