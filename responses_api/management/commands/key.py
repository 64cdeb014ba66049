"""`manage.py key`: creates an API key."""

from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from responses_api.management.fresh_database import ensure_tables
from responses_api.models import Project, User
from responses_api.services.accounts.create_key import create_key
from responses_api.services.accounts.create_project import create_project

MAX_DAYS = 36_500


class Command(BaseCommand):
    help = "Make an API key; the last line printed is the key, which is shown only this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="what the key is for, as lists show it")
        parser.add_argument("--project", required=True, help="the project it opens; made if it is new")
        parser.add_argument("--owner", metavar="USERNAME", help="whose key it is")
        parser.add_argument("--expires-days", type=int, metavar="DAYS", help="when it ends; without this, never")

    def handle(self, *args: Any, **options: Any) -> None:
        ensure_tables()
        days = options["expires_days"]
        if days is not None and not 1 <= days <= MAX_DAYS:
            raise CommandError(f"--expires-days must be a whole number from 1 to {MAX_DAYS}, not {days}.")
        owner = None
        if options["owner"] is not None:
            owner = User.objects.filter(username=options["owner"]).first()
            if owner is None:
                raise CommandError(f"There is no user called {options['owner']!r}.")
        name, project_name = options["name"].strip(), options["project"].strip()
        try:
            with transaction.atomic():
                project = Project.objects.filter(name=project_name).first()
                made = project is None
                if project is None:
                    project = create_project(name=project_name)
                expires_at = None if days is None else timezone.now() + timedelta(days=days)
                key, secret = create_key(project=project, name=name, owner=owner, expires_at=expires_at)
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error))) from None
        if made:
            self.stdout.write(f"Made the project “{project.name}”.")
        until = "" if key.expires_at is None else f", until {key.expires_at:%Y-%m-%d %H:%M} UTC"
        self.stdout.write(f"Made the key “{key.name}” for the project “{project.name}”{until}.")
        self.stdout.write("It is shown only this once:")
        self.stdout.write(secret)


def sentences(error: ValidationError) -> list[str]:
    """The messages of an error, each with the name of its field."""
    if not hasattr(error, "error_dict"):
        return list(error.messages)
    return [f"{field}: {text}" for field, texts in error.message_dict.items() for text in texts]
