"""The environment in which Python imports `startup/sitecustomize.py` in every process of a server."""

from pathlib import Path

from responses_site.setting_kinds import BASE_DIR


def startup_environment(variable: str, directory: Path) -> dict[str, str]:
    """Environment variables for processes that record into this directory, which is created.

    ``variable`` selects what they record.
    """
    directory.mkdir(parents=True, exist_ok=True)
    return {variable: str(directory), "PYTHONPATH": f"{Path(__file__).parent / 'startup'}:{BASE_DIR}"}
