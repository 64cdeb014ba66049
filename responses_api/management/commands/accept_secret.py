"""`manage.py accept_secret`: accepts a secret that was changed on purpose."""

from typing import Any

from django.core.management.base import BaseCommand

from responses_api.management.fresh_database import ensure_tables
from responses_api.services.processes.check_secret import accept_secret


class Command(BaseCommand):
    help = "Accept the current secret for this database. Data encrypted with the old one can't be opened any more."

    def handle(self, *args: Any, **options: Any) -> None:
        ensure_tables()
        accept_secret()
        self.stdout.write("Accepted. Start every process with this secret.")
