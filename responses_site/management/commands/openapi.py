"""Writes `docs/openapi.json`, or checks that it is up to date."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from responses_api.api.openapi.view import served_document

PATH = Path(__file__).resolve().parents[3] / "docs" / "openapi.json"


class Command(BaseCommand):
    help = "Writes docs/openapi.json from the protocol's types."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; fail when the file is out of date")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        wanted = orjson.dumps(served_document(), option=orjson.OPT_INDENT_2) + b"\n"
        if check:
            if not PATH.exists() or PATH.read_bytes() != wanted:
                raise CommandError("docs/openapi.json is out of date: run `python manage.py openapi`.")
            return
        PATH.write_bytes(wanted)
