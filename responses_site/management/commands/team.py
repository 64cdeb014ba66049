"""``manage.py team``: runs and supervises web and worker processes of the team shape on this machine."""

import os
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from inference import memory_for_models
from inference.types import ModelError
from responses_site.management.access import refuse_without_key, refuse_wrong_secret
from responses_site.management.default_model import ensure_default_model
from responses_site.terminal import own_terminal

RESTART_SECONDS = 2.0
STOP_SECONDS = 30.0


@dataclass(slots=True)
class Child:
    """A process of the team."""

    name: str
    command: list[str]
    environment: dict[str, str]
    process: "subprocess.Popen[bytes] | None" = None
    restart_at: float = 0.0

    def start(self) -> None:
        """Start the process in its own process group, so that Ctrl-C reaches the supervisor only."""
        self.process = subprocess.Popen(self.command, env={**os.environ, **self.environment}, start_new_session=True)


class Command(BaseCommand):
    """Starts the processes, restarts those that die, and ends all of them."""

    help = "Run web processes (ports PORT, PORT+1, …) and worker processes against DATABASE_URL and REDIS_URL."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--web", type=int, default=2, metavar="N", help="web processes (default 2)")
        parser.add_argument("--workers", type=int, default=2, metavar="N", help="worker processes (default 2)")

    def handle(self, *args: Any, web: int, workers: int, **options: Any) -> None:
        if not settings.RESPONSES_TEAM:
            raise CommandError(
                "The team shape needs DATABASE_URL=postgresql://…, REDIS_URL=redis://… and RESPONSES_SECRET_KEY. "
                "`make serve` needs nothing."
            )
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        children = [self.web(index) for index in range(web)]
        children += [self.worker(index, of=workers) for index in range(workers)]
        with own_terminal():
            try:
                self.prepare()
                for child in children:
                    child.start()
                while True:
                    time.sleep(0.2)
                    for child in children:
                        self.restart_if_ended(child)
            except KeyboardInterrupt:
                self.stderr.write("Stopping …")
            except ModelError as error:
                raise CommandError(str(error)) from error
            finally:
                self.stop(children)

    def prepare(self) -> None:
        """Do what is done once, not by each process."""
        call_command("migrate", verbosity=0, interactive=False)
        refuse_without_key()
        refuse_wrong_secret()
        if settings.RESPONSES_ENGINE == "mlx":
            ensure_default_model()

    def web(self, index: int) -> Child:
        """A web process with its own port."""
        port = str(settings.RESPONSES_PORT + index)
        return Child(f"web {index + 1}", [sys.executable, "manage.py", "web"], {"PORT": port})

    def worker(self, index: int, *, of: int) -> Child:
        """A worker process. Unless it is stated how much memory each may use, all share what the machine has."""
        command = [sys.executable, "-m", "celery", "-q", "-A", "responses_site", "worker", "--pool", "threads"]
        command += ["--concurrency", "4", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        # Celery warns root because of pickle, which this worker doesn't accept.
        environment = {"PYTHONWARNINGS": "ignore:You're running the worker with superuser"}
        if settings.RESPONSES_MEMORY_BYTES is None:
            environment["RESPONSES_MEMORY_BYTES"] = str(memory_for_models() // of)
        return Child(f"worker {index + 1}", [*command, "-n", f"worker-{index + 1}@%h"], environment)

    def restart_if_ended(self, child: Child) -> None:
        """Restart a process ``RESTART_SECONDS`` after it has ended."""
        if child.process is None:
            if time.monotonic() >= child.restart_at:
                child.start()
        elif child.process.poll() is not None:
            self.stderr.write(f"{child.name} ended with status {child.process.returncode}; it starts again.")
            child.process = None
            child.restart_at = time.monotonic() + RESTART_SECONDS

    def stop(self, children: list[Child]) -> None:
        """Terminate all processes, and kill those that take too long; a second Ctrl-C kills them at once."""
        running = [child.process for child in children if child.process is not None]
        for process in running:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + settings.RESPONSES_GRACE_SECONDS + STOP_SECONDS
        for process in running:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                deadline = 0.0
                process.kill()
                process.wait()
