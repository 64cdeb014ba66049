"""The project as a Django app, with commands but without models."""

from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "responses_site"
    verbose_name = "Site"

    def ready(self) -> None:
        # Code that sends tasks finds the configured Celery application, on any thread.
        from responses_api.services.processes.freed_memory import tune_allocator
        from responses_site.celery import app

        app.set_default()
        tune_allocator()
