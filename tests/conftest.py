"""What every test has: the services of this machine, and a word on what it lacks."""

import os
from collections.abc import Generator

import hypothesis
import pytest

from tests.real_model import default_model
from tests.services import amqp_url, postgres_server, postgres_url, redis_url

__all__ = ["amqp_url", "default_model", "postgres_server", "postgres_url", "redis_url"]

# A slow machine is no failure.
hypothesis.settings.register_profile("responses", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("responses")

STRICT = os.environ.get("RESPONSES_TEST_STRICT") == "1"
MARKERS = {"postgres_server": "postgres", "redis_url": "redis"}

lacking = pytest.StashKey[dict[str, int]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[lacking] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that uses a service carries its marker, so that `-m "not postgres"` leaves it out."""
    for item in items:
        for fixture, marker in MARKERS.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes what this machine lacks; in strict mode lacking it is a failure."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if reason.startswith("needs "):
            counts = item.config.stash[lacking]
            counts[reason] = counts.get(reason, 0) + 1
            if STRICT:
                report.outcome = "failed"
                report.longrepr = f"skipped under RESPONSES_TEST_STRICT=1: {reason}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for reason, count in config.stash[lacking].items():
        terminalreporter.write_line(f"Not run here: {count} tests, {reason}.", yellow=True)
