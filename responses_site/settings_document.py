"""Generates `docs/settings.md`, and types for the type checker, from the declarations in `responses_site.env`."""

import inspect
from pathlib import Path

from responses_site.env import Declaration, declarations, django_setting_types
from responses_site.setting_kinds import BASE_DIR

DOCUMENT = BASE_DIR / "docs" / "settings.md"
TYPES = BASE_DIR / "responses_site" / "settings" / "variables.pyi"

INTRODUCTION = """\
# Settings

<!-- Made by `manage.py settings_docs` from responses_site/env/: change it there. -->

Environment variables, all optional in the embedded shape (`make serve`). Setting `REDIS_URL` chooses the team shape:
web and worker processes apart, with PostgreSQL between them. An empty value counts as unset. A bad value ends the start
with one line that names the variable and says what is allowed; a `RESPONSES_` name that is no setting is warned of.
"""


TYPES_INTRODUCTION = """\
# Made by `manage.py settings_docs` from responses_site/env/: change it there.
import pathlib
"""


def generated_files() -> dict[Path, str]:
    """The generated files and their content."""
    return {DOCUMENT: settings_document(), TYPES: setting_types()}


def setting_types() -> str:
    """A stub with the types of Django's settings."""
    lines = [f"{name}: {inspect.formatannotation(kind)}" for name, kind in django_setting_types().items()]
    return "\n".join([TYPES_INTRODUCTION, *lines]) + "\n"


def settings_document() -> str:
    """The content of `docs/settings.md`."""
    lines = [INTRODUCTION, "| variable | default | allowed | shape | meaning |", "|---|---|---|---|---|"]
    lines += [_row(declaration) for declaration in declarations()]
    return "\n".join(lines) + "\n"


def _row(declaration: Declaration) -> str:
    cells = [
        f"`{declaration.name}`",
        declaration.default_text,
        declaration.kind.allowed,
        declaration.shape,
        declaration.help,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
