"""Writes `docs/settings.md`, or checks that it is what the code says."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from responses_site.settings_document import PATH, settings_document


class Command(BaseCommand):
    help = "Writes docs/settings.md from the declarations of the settings."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; fail when the file is out of date")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        wanted = settings_document()
        if check:
            if not PATH.exists() or PATH.read_text() != wanted:
                raise CommandError("docs/settings.md is out of date: run `python manage.py settings_docs`.")
            return
        PATH.parent.mkdir(exist_ok=True)
        PATH.write_text(wanted)
