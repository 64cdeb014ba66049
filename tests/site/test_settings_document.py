"""`docs/settings.md` matches the code."""

from django.core.management import call_command

from responses_site.env import declarations
from responses_site.settings_document import settings_document


def test_the_page_lists_every_variable_once() -> None:
    """One row each, in the order of declaration."""
    rows = [line.split("`")[1] for line in settings_document().splitlines() if line.startswith("| `")]
    assert rows == [declaration.name for declaration in declarations()]


def test_the_page_in_the_repository_is_in_sync() -> None:
    """`manage.py settings_docs` writes it, `make check` checks it."""
    call_command("settings_docs", "--check")
