"""`make bench`: every figure that the project promises, each beside its limit. Nothing else should run meanwhile.

python -m tests.perf.bench [throughput] [constraints] [latency] [chain]
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from inference import Registry, pull_default
from responses_site.setting_kinds import BASE_DIR
from tests.live.server import LiveServer, embedded, team
from tests.services import find_postgres, fresh_database, listens

from . import constraints, latency, throughput

REDIS_URL = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/14")


@contextmanager
def started(server: LiveServer) -> Iterator[LiveServer]:
    """A server for the time of a measurement."""
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def database() -> Iterator[str | None]:
    """The URL of a fresh PostgreSQL database; None where there is no server."""
    base = find_postgres()
    if base is None:
        yield None
        return
    with fresh_database(base) as url:
        yield url


def redis_listens() -> bool:
    """Whether there is a Redis."""
    parts = urlsplit(REDIS_URL)
    return listens(parts.hostname or "127.0.0.1", parts.port or 6379)


def run_throughput(work: Path) -> bool:
    """The server against the bare engine, with the default model."""
    data_dir = Path(os.environ.get("RESPONSES_DATA_DIR", BASE_DIR / ".data")).resolve()
    server = embedded(work / "throughput", **throughput.SETTINGS)
    # The model alone is shared with the user's own server, not the database.
    if (data_dir / "models").is_dir():
        (server.data_dir / "models").symlink_to(data_dir / "models")
    with started(server):
        return throughput.report(server)


def run_constraints(work: Path) -> bool:
    """What constraints cost in a batch, with the default model."""
    data_dir = Path(os.environ.get("RESPONSES_DATA_DIR", BASE_DIR / ".data")).resolve()
    return constraints.report(pull_default(Registry(data_dir)), work / "constraints")


def run_latency(work: Path) -> bool:
    """The first event under load, in both shapes."""
    with started(embedded(work / "latency", **latency.SETTINGS)) as server:
        good = latency.report("embedded", server, 10)
    with database() as url:
        if url is None or not redis_listens():
            print("first event, team: not measured, it needs PostgreSQL and Redis")
            return good
        with started(team(work / "latency-team", database_url=url, redis_url=REDIS_URL, **latency.SETTINGS)) as server:
            return latency.report("team", server, 25) and good


def run_chain(work: Path) -> bool:
    """The long chain, on both databases."""
    good = True
    with database() as url:
        for database_url in ("", url):
            if database_url is None:
                print("chain, postgresql: not measured, it needs PostgreSQL")
                continue
            environment = {
                "PATH": os.environ["PATH"],
                "RESPONSES_DATA_DIR": str(work / "chain"),
                "RESPONSES_ENGINE": "scripted",
                "DATABASE_URL": database_url,
            }
            done = subprocess.run(
                [sys.executable, "-m", "tests.perf.chain"], cwd=BASE_DIR, env=environment, check=False
            )
            good = good and done.returncode == 0
    return good


BENCHES: dict[str, Callable[[Path], bool]] = {
    "throughput": run_throughput,
    "constraints": run_constraints,
    "latency": run_latency,
    "chain": run_chain,
}


def main() -> int:
    """Run what was asked for; 0 when all of it is good."""
    parser = argparse.ArgumentParser(description="Measure what the project promises.")
    parser.add_argument("what", nargs="*", choices=[*BENCHES, []], help="all of them without a name")
    chosen = parser.parse_args().what or list(BENCHES)
    with tempfile.TemporaryDirectory(prefix="responses-bench-") as work:
        for name in chosen:
            for directory in (name, f"{name}-team"):
                (Path(work) / directory).mkdir()
        results = [BENCHES[name](Path(work)) for name in chosen]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
