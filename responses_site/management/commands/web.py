"""``manage.py web``: a web process of the team shape."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from responses_site.management.access import base_url, refuse_without_key, refuse_wrong_secret


class Command(BaseCommand):
    """A web server without an engine."""

    help = "Serve the API on HOST:PORT; the generations run in worker processes (team shape)."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.RESPONSES_TEAM:
            raise CommandError("REDIS_URL is not set, so no worker process could be reached. `make serve` needs none.")
        refuse_without_key()
        refuse_wrong_secret()

        from responses_site.asgi import application
        from responses_site.http.server import Server

        server = Server(application, host=settings.RESPONSES_HOST, port=settings.RESPONSES_PORT, ready=self.announce)
        server.run()
        if server.failure:
            raise CommandError(
                f"Could not listen on {settings.RESPONSES_HOST}:{settings.RESPONSES_PORT}: {server.failure}"
            )

    def announce(self, port: int) -> None:
        """Print the URL."""
        self.stdout.write(f"Web process ready at {base_url(port)}/v1")
        self.stdout.flush()
