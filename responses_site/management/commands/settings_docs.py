"""Writes `docs/settings.md` and the types of the settings, or checks that they are up to date."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from responses_site.setting_kinds import BASE_DIR
from responses_site.settings_document import generated_files


class Command(BaseCommand):
    help = "Writes docs/settings.md, and the types of Django's settings, from the declarations of the settings."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is out of date")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        for path, wanted in generated_files().items():
            if check and (not path.exists() or path.read_text() != wanted):
                raise CommandError(
                    f"{path.relative_to(BASE_DIR)} is out of date: run `python manage.py settings_docs`."
                )
            if not check:
                path.write_text(wanted)
