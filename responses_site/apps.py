"""The project as an app: it has commands and checks, but no models."""

from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "responses_site"
    verbose_name = "Site"

    def ready(self) -> None:
        # Whoever sends a task finds the configured application, on any thread.
        from responses_api.services.processes.freed_memory import limit_arenas
        from responses_site.celery import app

        app.set_default()
        limit_arenas()
