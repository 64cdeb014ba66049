"""`manage.py admin`: creates an administrator."""

import getpass
import os
import sys
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from responses_api.management.fresh_database import ensure_tables
from responses_api.models import User
from responses_api.services.accounts.create_administrator import create_administrator

DEFAULT_NAME = "admin"
# Django's own names, which its `createsuperuser` reads too.
NAME_VARIABLE = "DJANGO_SUPERUSER_USERNAME"
PASSWORD_VARIABLE = "DJANGO_SUPERUSER_PASSWORD"


class Command(BaseCommand):
    help = (
        "Make an administrator. Asks for a name and a password; scripts give them with --username and "
        f"--password-stdin, or in {NAME_VARIABLE} and {PASSWORD_VARIABLE}."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--username", help="the name to sign in with")
        parser.add_argument("--password-stdin", action="store_true", help="read the password from standard input")

    def handle(self, *args: Any, **options: Any) -> None:
        ensure_tables()
        username = options["username"] or os.environ.get(NAME_VARIABLE, "")
        password = os.environ.get(PASSWORD_VARIABLE, "")
        if options["password_stdin"]:
            password = sys.stdin.readline().rstrip("\r\n")
            if not password:
                raise CommandError("--password-stdin was given, but standard input has no password.")
        try:
            if password:
                self.make(username or DEFAULT_NAME, password)
            else:
                self.ask(username)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None

    def make(self, username: str, password: str) -> None:
        """Create the administrator and print where to sign in. Raises :class:`ValidationError`."""
        refuse_taken(username)
        user = create_administrator(username=username, password=password)
        self.stdout.write(f"Made the administrator “{user.username}”. Sign in at /admin/ of the server.")

    def ask(self, username: str) -> None:
        """Ask for a name and a password until they are valid."""
        if not sys.stdin.isatty():
            raise CommandError(
                "There is no terminal to ask for a password. Give it with --password-stdin, "
                f"or in the environment as {PASSWORD_VARIABLE}."
            )
        try:
            username = username or input(f"Name [{DEFAULT_NAME}]: ").strip() or DEFAULT_NAME
            refuse_taken(username)
            while True:
                password = getpass.getpass("Password: ")
                if password != getpass.getpass("Password again: "):
                    self.stderr.write("The two differ. Try again.")
                    continue
                try:
                    self.make(username, password)
                except ValidationError as error:
                    if "username" in getattr(error, "error_dict", {}):
                        raise
                    self.stderr.write(" ".join(error.messages))
                    continue
                return
        except (KeyboardInterrupt, EOFError):
            raise CommandError("Nothing was made.") from None


def refuse_taken(username: str) -> None:
    """Raise :class:`CommandError` when the name is taken; its message says how to set a new password."""
    if User.objects.filter(username=User.normalize_username(username)).exists():
        raise CommandError(
            f"There is a user called {username!r} already. "
            f"To set a new password: .venv/bin/python manage.py changepassword {username}"
        )
