"""`docs/settings.md`, made from the declarations in `responses_site.env`."""

from responses_site.env import Declaration, declarations
from responses_site.setting_kinds import BASE_DIR

PATH = BASE_DIR / "docs" / "settings.md"

INTRODUCTION = """\
# Settings

<!-- Made by `manage.py settings_docs` from responses_site/env.py: change it there. -->

Environment variables, all optional in the embedded shape (`make serve`). Setting `REDIS_URL` chooses the team shape:
web and worker processes apart, with PostgreSQL between them. An empty value counts as unset. A bad value ends the start
with one line that names the variable and says what is allowed; a `RESPONSES_` name that is no setting is warned of.
"""


def settings_document() -> str:
    """The whole page."""
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
