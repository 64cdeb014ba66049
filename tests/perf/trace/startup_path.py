"""What makes Python import `startup/sitecustomize.py` in every process of a server."""

from pathlib import Path

from responses_site.setting_kinds import BASE_DIR


def watched_by(variable: str, directory: Path) -> dict[str, str]:
    """The environment of processes that write to this directory what the variable says, which is made."""
    directory.mkdir(parents=True, exist_ok=True)
    return {variable: str(directory), "PYTHONPATH": f"{Path(__file__).parent / 'startup'}:{BASE_DIR}"}
