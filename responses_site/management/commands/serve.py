"""``manage.py serve``: the embedded shape, everything in one process."""

import signal
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from inference.types import ModelError
from responses_api.management.progress import ProgressBars
from responses_site.data_dir import only_server
from responses_site.env import SettingError
from responses_site.management.access import base_url, refuse_without_key, refuse_wrong_secret
from responses_site.management.banner import banner
from responses_site.management.default_model import ensure_default_model
from responses_site.terminal import own_terminal


def empty_write_ahead_log() -> None:
    """Write SQLite's log to its database file and empty it, since it may contain deleted content."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


class Command(BaseCommand):
    """One process: web server, Celery worker, engine."""

    help = "Serve on HOST:PORT with SQLite and the engine in this process. Ctrl-C stops it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.RESPONSES_TEAM:
            raise CommandError(
                "REDIS_URL is set, so this is the team shape: start it with `make team`, or unset REDIS_URL."
            )
        # SIGTERM from a supervisor has the effect of Ctrl-C, at any time during the start.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with own_terminal(), only_server(settings.RESPONSES_DATA_DIR):
                self.run()
        except KeyboardInterrupt:
            self.stderr.write("Stopped.")
        except (ModelError, SettingError) as error:
            raise CommandError(str(error)) from error

    def run(self) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        refuse_without_key()
        refuse_wrong_secret()
        if settings.RESPONSES_ENGINE == "mlx":
            ensure_default_model()
        from responses_api.worker.startup import start_worker, stop_worker

        with ProgressBars() as bars:
            worker = start_worker(progress=bars)
        try:
            failure = self.listen(worker.drain)
        finally:
            stop_worker(worker)
            empty_write_ahead_log()
            self.stderr.write("Stopped.")
        if failure:
            raise CommandError(f"Could not listen on {settings.RESPONSES_HOST}:{settings.RESPONSES_PORT}: {failure}")

    def listen(self, drain: Callable[[], None]) -> str:
        """Serve until stopped. Returns why it could not listen, or an empty string."""
        from responses_api.worker.celery_thread import CeleryThread
        from responses_site.asgi import application
        from responses_site.celery import app
        from responses_site.http.server import Server

        celery = CeleryThread(app)
        celery.start()
        server = Server(
            application, host=settings.RESPONSES_HOST, port=settings.RESPONSES_PORT, ready=self.announce, drain=drain
        )
        try:
            server.run()
        finally:
            celery.stop()
        return server.failure

    def announce(self, port: int) -> None:
        """Print how to use the server."""
        self.stdout.write(banner(base_url(port)))
        self.stdout.flush()
