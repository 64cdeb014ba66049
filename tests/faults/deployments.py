"""Servers of each shape, with their own services, whose processes the scripts may kill."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.live.server import LiveServer, embedded, free_ports, running, team
from tests.services import find_postgres, fresh_database, listens

AMQP_URL = os.environ.get("TEST_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672//")
SERVICE_SECONDS = 30
HOUR = 3600
SETTINGS = {
    "RESPONSES_BACKGROUND_MAX_JOBS": "5000",
    "RESPONSES_STREAM_READERS": "5000",
    "RESPONSES_STREAM_READERS_PER_KEY": "5000",
    "RESPONSES_LEASE_SECONDS": "2",
    "RESPONSES_DATABASE_CONNECTIONS": "12",
}


class Missing(Exception):
    """This machine lacks a service or program that a case needs."""


@dataclass(kw_only=True)
class Deployment:
    """A running server and its services."""

    name: str
    server: LiveServer
    database_url: str = ""
    extra_workers: list[LiveServer] = field(default_factory=list)
    """Teams without web processes, each with one worker that has other settings."""
    _connection: Any = field(default=None, repr=False)

    @property
    def is_embedded(self) -> bool:
        return not self.database_url

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a query on the server's database, without the server."""
        return self.server.rows(statement)

    def processes(self, kind: str) -> list[int]:
        """The process ids of the team's `web` or `worker` processes; in the embedded shape that of its one process."""
        running = [server.process.pid for server in (self.server, *self.extra_workers) if server.process is not None]
        if self.is_embedded:
            return running
        children = run("pgrep", "-P", ",".join(map(str, running)), check=False)
        word = {"web": "manage.py web", "worker": "celery"}[kind]
        return [
            pid for pid in map(int, children.split()) if word in run("ps", "-o", "command=", "-p", pid, check=False)
        ]

    def log_lines(self, *words: str) -> list[str]:
        """The lines of all logs that contain any of these words."""
        logs = [
            server.log.read_text(encoding="utf-8", errors="replace") for server in (self.server, *self.extra_workers)
        ]
        return [line for text in logs for line in text.splitlines() if any(word in line for word in words)]


def run(*command: object, check: bool = True) -> str:
    """Run a program. Returns its standard output; raises :class:`Missing` if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=60)
    if check and done.returncode:
        raise Missing(f"{command[0]}: {done.stderr or done.stdout}")
    return done.stdout


@contextmanager
def started(deployment: Deployment) -> Iterator[Deployment]:
    """Start all its processes; at the end they must stop with status 0."""
    with ExitStack() as stack:
        for server in (*deployment.extra_workers, deployment.server):  # the last is ready only if there is a worker
            stack.enter_context(running(server))
        wait_for_workers(deployment)
        yield deployment


@contextmanager
def embedded_deployment(directory: Path, **settings: str) -> Iterator[Deployment]:
    """One process on SQLite."""
    data_dir = fresh_directory(directory)
    with started(Deployment(name="SQLite embedded", server=embedded(data_dir, **SETTINGS | settings))) as deployment:
        yield deployment


@contextmanager
def redis_deployment(
    directory: Path, *, web: int = 2, workers: int = 2, extra_workers: Sequence[dict[str, str]] = (), **settings: str
) -> Iterator[Deployment]:
    """A team on PostgreSQL and Redis, with one more worker for each of the settings ``extra_workers``."""
    with database() as url, own_redis() as redis:
        server = stopped_team(directory, redis.url, url, web=web, workers=workers, **settings)
        teams = [
            stopped_team(directory, redis.url, url, web=0, workers=1, **server.settings | own) for own in extra_workers
        ]
        with started(
            Deployment(name="PostgreSQL + Redis", server=server, database_url=url, extra_workers=teams)
        ) as deployment:
            yield deployment


@contextmanager
def rabbitmq_deployment(directory: Path, **sizes_and_settings: Any) -> Iterator[Deployment]:
    """The same with RabbitMQ as the broker."""
    with (
        virtual_host() as broker,
        redis_deployment(directory, RESPONSES_BROKER_URL=broker, **sizes_and_settings) as deployment,
    ):
        deployment.name = "PostgreSQL + RabbitMQ"
        yield deployment


DEPLOYMENTS: dict[str, Callable[..., AbstractContextManager[Deployment]]] = {
    "embedded": embedded_deployment,
    "redis": redis_deployment,
    "rabbitmq": rabbitmq_deployment,
}


def stopped_team(
    directory: Path, redis_url: str, database_url: str, *, web: int, workers: int, **settings: str
) -> LiveServer:
    """The processes of a team, not started yet."""
    return team(
        fresh_directory(directory),
        database_url=database_url,
        redis_url=redis_url,
        web=web,
        workers=workers,
        **SETTINGS | settings,
    )


def fresh_directory(directory: Path) -> Path:
    """A directory for a server of this run."""
    directory.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=directory))


@contextmanager
def database() -> Iterator[str]:
    """A fresh database of the PostgreSQL that tests use."""
    base = find_postgres()
    if base is None:
        raise Missing("needs PostgreSQL with a role that may create databases: set TEST_DATABASE_URL")
    with fresh_database(base) as url:
        yield url


@contextmanager
def virtual_host() -> Iterator[str]:
    """The URL of a new virtual host of RabbitMQ; of the default one if its control program can't be used."""
    parts = urlsplit(AMQP_URL)
    if not listens(parts.hostname or "127.0.0.1", parts.port or 5672):
        raise Missing("needs RabbitMQ: set TEST_AMQP_URL")
    name = f"responses-test-{secrets.token_hex(4)}"
    try:
        run("rabbitmqctl", "add_vhost", name)
        run("rabbitmqctl", "set_permissions", "-p", name, parts.username or "guest", ".*", ".*", ".*")
    except (Missing, FileNotFoundError):
        yield AMQP_URL
        return
    try:
        yield parts._replace(path=f"/{name}").geturl()
    finally:
        run("rabbitmqctl", "delete_vhost", name)


@dataclass(kw_only=True)
class OwnRedis:
    """A Redis that only the script uses and may stop."""

    port: int
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it without data."""
        program = shutil.which("redis-server")
        if program is None:
            raise Missing("needs the program redis-server")
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, cwd=tempfile.gettempdir())
        wait_for_port(self.port)

    def stop(self) -> None:
        """Stop it. Its data is lost."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(SERVICE_SECONDS)
            self.process = None


@contextmanager
def own_redis() -> Iterator[OwnRedis]:
    """A Redis on a free port."""
    redis = OwnRedis(port=free_ports(1))
    redis.start()
    try:
        yield redis
    finally:
        redis.stop()


@dataclass(kw_only=True)
class OwnPostgres:
    """A PostgreSQL that only the script uses and may stop."""

    port: int
    directory: Path
    programs: Path

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it with its data."""
        options = f"-p {self.port} -k {self.directory} -c listen_addresses=127.0.0.1 -c max_connections=200"
        self.run("pg_ctl", "-D", self.directory / "data", "-o", options, "-l", self.directory / "log", "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it, by default as in a crash."""
        self.run("pg_ctl", "-D", self.directory / "data", "-m", mode, "-w", "stop")

    def run(self, program: str, *arguments: object) -> None:
        """Run one of PostgreSQL's programs, which refuse to run as root."""
        command = [str(self.programs / program), *map(str, arguments)]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server would keep pipes open
            stderr=subprocess.DEVNULL,
            cwd=self.directory,
            user="postgres" if os.geteuid() == 0 else None,
            extra_groups=[] if os.geteuid() == 0 else None,
            check=False,
            timeout=60,
        )
        if done.returncode:
            raise Missing(f"{program} ended with status {done.returncode}")


@contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """A PostgreSQL on a free port."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    pg_ctl = str(installed[-1]) if installed else shutil.which("pg_ctl")
    if pg_ctl is None:
        raise Missing("needs the programs of a PostgreSQL server")
    directory = Path(tempfile.mkdtemp(prefix="faults-postgres-"))
    if os.geteuid() == 0:
        os.chown(directory, pwd.getpwnam("postgres").pw_uid, -1)
    postgres = OwnPostgres(port=free_ports(1), directory=directory, programs=Path(pg_ctl).parent)
    try:
        postgres.run("initdb", "-D", directory / "data", "-U", "postgres", "-A", "trust", "--no-sync")
        postgres.start()
        try:
            yield postgres
        finally:
            postgres.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def wrong_clock(seconds: int) -> dict[str, str]:
    """The environment of a process whose clock is wrong by so many seconds."""
    libraries = sorted(Path("/usr/lib").glob("**/faketime/libfaketime.so.1"))
    if not libraries:
        raise Missing("needs libfaketime")
    return {
        "LD_PRELOAD": str(libraries[0]),
        "FAKETIME": f"{seconds:+d}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "PYTHONPATH": str(Path(__file__).with_name("wrong_clock")),
    }


def wrong_clocks(*, right: int = 1) -> dict[str, Any]:
    """Arguments of ``redis_deployment``: its clocks are an hour fast, that of one more worker is an hour slow."""
    return {"extra_workers": [wrong_clock(-HOUR), *[{"LD_PRELOAD": ""}] * right], **wrong_clock(HOUR)}


def wait_for_workers(deployment: Deployment) -> None:
    """Wait until all workers are announced: the server is ready with the first."""
    deadline = time.monotonic() + SERVICE_SECONDS
    while deployment.rows("SELECT COUNT(*) FROM responses_api_process WHERE kind = 'worker'")[0][0] < len(
        deployment.processes("worker")
    ):
        if time.monotonic() > deadline:
            raise AssertionError("not all workers are announced")
        time.sleep(0.1)


def wait_for_port(port: int) -> None:
    """Wait until a process listens on this port."""
    deadline = time.monotonic() + SERVICE_SECONDS
    while not listens("127.0.0.1", port):
        if time.monotonic() > deadline:
            raise Missing(f"nothing listens on port {port}")
        time.sleep(0.05)


def kill(pid: int, signal_number: int = signal.SIGKILL) -> None:
    """Send a signal to a process, if it still exists."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal_number)
