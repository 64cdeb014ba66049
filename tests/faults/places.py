"""Where the scripts run: servers in each shape, with services of their own, whose processes may be killed."""

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
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.live.server import LiveServer, embedded, free_ports
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
    """This machine lacks what a case needs."""


@dataclass(kw_only=True)
class Place:
    """A server that runs, and what lies behind it."""

    name: str
    server: LiveServer
    database_url: str = ""
    beside: list[LiveServer] = field(default_factory=list)
    """Teams without web processes, each with one worker that is given other settings."""
    _connection: Any = field(default=None, repr=False)

    @property
    def is_embedded(self) -> bool:
        return not self.database_url

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What a query of the server's database finds, past the server."""
        return self.server.rows(statement)

    def processes(self, kind: str) -> list[int]:
        """The process ids of the team's `web` or `worker` processes; of the embedded shape its one process."""
        running = [server.process.pid for server in (self.server, *self.beside) if server.process is not None]
        if self.is_embedded:
            return running
        found = run("pgrep", "-P", ",".join(map(str, running)), check=False)
        word = {"web": "manage.py web", "worker": "celery"}[kind]
        return [pid for pid in map(int, found.split()) if word in run("ps", "-o", "command=", "-p", pid, check=False)]

    def log_lines(self, *words: str) -> list[str]:
        """The lines of its logs that hold any of these words."""
        logs = [server.log.read_text(encoding="utf-8", errors="replace") for server in (self.server, *self.beside)]
        return [line for text in logs for line in text.splitlines() if any(word in line for word in words)]


def run(*command: object, check: bool = True) -> str:
    """What a program printed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=60)
    if check and done.returncode:
        raise Missing(f"{command[0]}: {done.stderr or done.stdout}")
    return done.stdout


@contextmanager
def started(place: Place) -> Iterator[Place]:
    """Run it; at the end it must stop in order."""
    servers = [*place.beside, place.server]  # which is ready only when there is a worker
    try:
        for server in servers:
            server.start()
        wait_for_workers(place)
        yield place
    except BaseException:
        for server in servers:
            if server.process is not None:
                server.kill()
        raise
    statuses = [server.stop() for server in reversed(servers)]
    assert not any(statuses), f"the servers ended with statuses {statuses}"


@contextmanager
def embedded_place(work: Path, **settings: str) -> Iterator[Place]:
    """One process on SQLite."""
    data_dir = fresh_directory(work)
    with started(Place(name="SQLite embedded", server=embedded(data_dir, **SETTINGS | settings))) as place:
        yield place


@contextmanager
def redis_place(
    work: Path, *, web: int = 2, workers: int = 2, beside: Sequence[dict[str, str]] = (), **settings: str
) -> Iterator[Place]:
    """A team on PostgreSQL and Redis, with another worker for each of the settings ``beside``."""
    with database() as url, own_redis() as redis:
        server = team(work, redis.url, url, web=web, workers=workers, **settings)
        others = [team(work, redis.url, url, web=0, workers=1, **server.settings | other) for other in beside]
        with started(Place(name="PostgreSQL + Redis", server=server, database_url=url, beside=others)) as place:
            yield place


@contextmanager
def rabbit_place(work: Path, **sizes_and_settings: Any) -> Iterator[Place]:
    """The same, but its workers are woken through RabbitMQ."""
    with virtual_host() as broker, redis_place(work, RESPONSES_BROKER_URL=broker, **sizes_and_settings) as place:
        place.name = "PostgreSQL + RabbitMQ"
        yield place


PLACES: dict[str, Callable[..., AbstractContextManager[Place]]] = {
    "embedded": embedded_place,
    "redis": redis_place,
    "rabbitmq": rabbit_place,
}


def team(work: Path, redis_url: str, database_url: str, *, web: int, workers: int, **settings: str) -> LiveServer:
    """The processes of a team, not started yet."""
    services = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "RESPONSES_SECRET_KEY": secrets.token_urlsafe(48),
    }
    return LiveServer(
        command=["manage.py", "team", "--web", str(web), "--workers", str(workers)],
        data_dir=fresh_directory(work),
        web=web,
        settings=SETTINGS | services | settings,
    )


def fresh_directory(work: Path) -> Path:
    """A directory for a server of this run."""
    work.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=work))


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
    """A RabbitMQ of one's own where its control program may be used, else the default one."""
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
    """A Redis of the script's own, that may be away for a while."""

    port: int
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it empty."""
        program = shutil.which("redis-server")
        if program is None:
            raise Missing("needs the program redis-server")
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, cwd=tempfile.gettempdir())
        wait_for_port(self.port)

    def stop(self) -> None:
        """End it; what it held is gone."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(SERVICE_SECONDS)
            self.process = None


@contextmanager
def own_redis() -> Iterator[OwnRedis]:
    """A Redis on a spare port."""
    redis = OwnRedis(port=free_ports(1))
    redis.start()
    try:
        yield redis
    finally:
        redis.stop()


@dataclass(kw_only=True)
class OwnPostgres:
    """A PostgreSQL of the script's own, that may be away for a while."""

    port: int
    directory: Path
    programs: Path

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it on what it has stored."""
        options = f"-p {self.port} -k {self.directory} -c listen_addresses=127.0.0.1 -c max_connections=200"
        self.run("pg_ctl", "-D", self.directory / "data", "-o", options, "-l", self.directory / "log", "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        """End it, by default as a crash would."""
        self.run("pg_ctl", "-D", self.directory / "data", "-m", mode, "-w", "stop")

    def run(self, program: str, *arguments: object) -> None:
        """Run one of PostgreSQL's programs, which root may not."""
        command = [str(self.programs / program), *map(str, arguments)]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server would keep a pipe open
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
    """A PostgreSQL on a spare port."""
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    found = str(newest[-1]) if newest else shutil.which("pg_ctl")
    if found is None:
        raise Missing("needs the programs of a PostgreSQL server")
    directory = Path(tempfile.mkdtemp(prefix="faults-postgres-"))
    if os.geteuid() == 0:
        os.chown(directory, pwd.getpwnam("postgres").pw_uid, -1)
    postgres = OwnPostgres(port=free_ports(1), directory=directory, programs=Path(found).parent)
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
    found = sorted(Path("/usr/lib").glob("**/faketime/libfaketime.so.1"))
    if not found:
        raise Missing("needs libfaketime")
    return {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME": f"{seconds:+d}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "PYTHONPATH": str(Path(__file__).with_name("wrong_clock")),
    }


def wrong_clocks(*, right: int = 1) -> dict[str, Any]:
    """For ``redis_place``: its own processes are an hour ahead; beside them a worker an hour behind and some right."""
    return {"beside": [wrong_clock(-HOUR), *[{"LD_PRELOAD": ""}] * right], **wrong_clock(HOUR)}


def wait_for_workers(place: Place) -> None:
    """Until all have announced themselves: the server is ready with one."""
    deadline = time.monotonic() + SERVICE_SECONDS
    while place.rows("SELECT COUNT(*) FROM responses_api_process WHERE kind = 'worker'")[0][0] < len(
        place.processes("worker")
    ):
        if time.monotonic() > deadline:
            raise AssertionError("not all workers announce themselves")
        time.sleep(0.1)


def wait_for_port(port: int) -> None:
    """Until something listens there."""
    deadline = time.monotonic() + SERVICE_SECONDS
    while not listens("127.0.0.1", port):
        if time.monotonic() > deadline:
            raise Missing(f"nothing listens on port {port}")
        time.sleep(0.05)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a process a signal; nothing when it is gone already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
