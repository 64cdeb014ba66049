"""A server as users start it: `manage.py serve` or `manage.py team` as separate processes."""

import contextlib
import itertools
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
from openai import OpenAI

from responses_site.setting_kinds import BASE_DIR
from tests.processes import coverage_environment, own_share

DATABASE_FILE = "responses.sqlite3"
SECRET_START = "sk-mlx-"
START_SECONDS = 60.0
STOP_SECONDS = 40.0


PORTS = range(20_000, 32_000)
"""Below those that the kernel gives to outgoing connections."""


def free_ports(count: int) -> int:
    """The first of ``count`` consecutive free ports, which no other test process takes meanwhile."""
    mine = own_share(PORTS)
    while True:
        first = secrets.choice(mine[: -count or None])
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


@dataclass(kw_only=True)
class LiveServer:
    """A running server. ``urls`` has a base URL for each web process."""

    command: list[str]
    data_dir: Path
    settings: dict[str, str] = field(default_factory=dict)
    web: int = 1
    port: int = 0
    key: str = ""
    """A key of the project `default`, where requests need one."""
    measured: bool = False
    """Whether coverage measures its processes too, when it measures the tests."""
    process: "subprocess.Popen[bytes] | None" = None
    _clients: dict[tuple[str, int], OpenAI] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.port = self.port or free_ports(self.web)
        self.log = self.data_dir / "server.log"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the server's processes and of commands beside it."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "DJANGO_SETTINGS_MODULE": "responses_site.settings",
            "RESPONSES_DATA_DIR": str(self.data_dir),
            "RESPONSES_ENGINE": "scripted",
            "RESPONSES_GRACE_SECONDS": "0",
            "PORT": str(self.port),
            **self.settings,
        }

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{self.port + index}/v1" for index in range(self.web)]

    @property
    def url(self) -> str:
        return self.urls[0]

    @property
    def headers(self) -> dict[str, str]:
        """The headers that every request needs."""
        return {"authorization": f"Bearer {self.key}"} if self.key else {}

    def client(self, *, key: str = "", web: int = 0) -> OpenAI:
        """The SDK without retries, as tests check the first answer. Closed with the server."""
        key = key or self.key or "any"
        with self._lock:  # tests use many threads, and each client has to be closed
            if (key, web) not in self._clients:
                self._clients[key, web] = OpenAI(base_url=self.urls[web], api_key=key, max_retries=0, timeout=30)
            return self._clients[key, web]

    def http(self, *, key: str = "", web: int = 0) -> httpx.Client:
        """Plain HTTP."""
        headers = {"authorization": f"Bearer {key}"} if key else self.headers
        return httpx.Client(base_url=self.urls[web], headers=headers, timeout=30)

    def start(self) -> None:
        """Start it and wait until every web process is ready."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self.command],
                cwd=BASE_DIR,
                env=self.environment | (coverage_environment() if self.measured else {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        for url in self.urls:
            while not self._is_ready(url):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.kill()
                    raise AssertionError(f"the server did not start:\n{self.log.read_text()[-4000:]}")
                time.sleep(0.05)
        if self.needs_key and not self.key:
            self.key = self.make_key("default")

    @property
    def needs_key(self) -> bool:
        """Whether requests always need a key, as in a team, which serves other machines."""
        return "REDIS_URL" in self.settings and self.web > 0

    def _is_ready(self, url: str) -> bool:
        try:
            return httpx.get(url.removesuffix("/v1") + "/readyz", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stop the server and return its exit status."""
        assert self.process is not None
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """Kill the server and all processes that it has started."""
        assert self.process is not None
        listed = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False)
        for pid in (self.process.pid, *map(int, listed.stdout.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def manage(self, *arguments: str) -> str:
        """Run a command beside the server. Returns its output."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=BASE_DIR,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make_keys(self, *projects: str) -> list[str]:
        """Make a key of each of these projects, in one process."""
        code = f"from django.core.management import call_command\nfor project in {projects}:\n"
        code += "    call_command('key', name='test', project=project)"
        shown = self.manage("shell", "-v", "0", "-c", code).split()
        return [word for word in shown if word.startswith(SECRET_START)]

    def make_key(self, project: str) -> str:
        """Make a key of a project."""
        return self.manage("key", "--name", "test", "--project", project).splitlines()[-1]

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a query on the server's database, without the server."""
        if url := self.settings.get("DATABASE_URL"):
            with psycopg.connect(url, connect_timeout=5) as connection:
                return connection.execute(statement).fetchall()
        with contextlib.closing(sqlite3.connect(self.data_dir / DATABASE_FILE, timeout=20)) as connection:
            return connection.execute(statement).fetchall()


_redis_databases = itertools.cycle(own_share(range(1, 16)))
"""Servers that share a broker would take each other's messages, and wait for the next sweep."""


def embedded(data_dir: Path, **settings: str) -> LiveServer:
    """The embedded shape."""
    return LiveServer(command=["manage.py", "serve"], data_dir=data_dir, settings=settings)


def team(data_dir: Path, *, database_url: str, redis_url: str, web: int, workers: int, **settings: str) -> LiveServer:
    """The team shape. Each team has its own database of Redis, unless ``settings`` name one."""
    return LiveServer(
        command=["manage.py", "team", "--web", str(web), "--workers", str(workers)],
        data_dir=data_dir,
        web=web,
        settings={
            "DATABASE_URL": database_url,
            "REDIS_URL": urlsplit(redis_url)._replace(path=f"/{next(_redis_databases)}").geturl(),
            "RESPONSES_SECRET_KEY": secrets.token_urlsafe(48),
            **settings,
        },
    )


@contextmanager
def running(server: LiveServer) -> Iterator[LiveServer]:
    """Start a server; at the end it must stop with status 0. An exception kills it."""
    server.start()
    try:
        yield server
    except BaseException:
        server.kill()
        raise
    status = server.stop()
    assert status == 0, server.log.read_text()[-4000:]
