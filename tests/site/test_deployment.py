"""The files of `docs/deployment/` match the program: they are valid, and their settings and commands exist."""

import configparser
import plistlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from responses_site.env import Environment, declarations
from responses_site.management.commands.team import Command as Team
from responses_site.setting_kinds import BASE_DIR

FILES = BASE_DIR / "docs" / "deployment"
SECRET = "0123456789" * 6


def compose() -> dict[str, Any]:
    """The services, with their variables substituted."""
    text = (FILES / "compose.yaml").read_text(encoding="utf-8")
    text = re.sub(r"\$\{(\w+)(:[-?][^}]*)?\}", lambda found: {"MLX": "cpu"}.get(found[1], SECRET), text)
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    return services


def unit(path: Path) -> configparser.SectionProxy:
    """The service section of a systemd unit, with all of its variables under `Environment`."""
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text(encoding="utf-8"))
    assert {"Unit", "Service", "Install"} == set(parser.sections())
    return parser["Service"]


def assignments(text: str) -> dict[str, str]:
    """The variables of an environment file."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def processes() -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Each process of ours that the files start: its name, command and environment."""
    for name, service in compose().items():
        if service["image"].startswith("mlx-responses"):
            yield f"compose {name}", service["command"], service["environment"]
    shared = assignments((FILES / "systemd" / "environment").read_text(encoding="utf-8"))
    for path in sorted((FILES / "systemd").glob("*.service")):
        service = unit(path)
        own = dict(word.split("=", 1) for word in service["Environment"].replace("%i", "8080").split())
        team = {**shared, "RESPONSES_SECRET_KEY": SECRET} if path.stem != "serve" else {}
        yield f"systemd {path.stem}", shlex.split(service["ExecStart"]), {**team, **own}
    for path in sorted((FILES / "launchd").glob("*.plist")):
        with path.open("rb") as file:
            job = plistlib.load(file)
        assert path.stem == job["Label"]
        yield f"launchd {path.stem}", job["ProgramArguments"], job["EnvironmentVariables"]


PROCESSES = list(processes())


def test_every_deployment_shape_is_there() -> None:
    """Containers, systemd and launchd each start web and worker processes; the last two the embedded shape too."""
    kinds = [(name.split()[0], "celery" if "celery" in command else command[-1]) for name, command, _ in PROCESSES]
    for place in ("compose", "systemd", "launchd"):
        assert (place, "web") in kinds
        assert (place, "celery") in kinds
    assert {("systemd", "serve"), ("launchd", "serve"), ("compose", "--no-input")} <= set(kinds)


@pytest.mark.parametrize(
    ("command", "environment"), [case[1:] for case in PROCESSES], ids=[case[0] for case in PROCESSES]
)
def test_each_process_can_start(command: list[str], environment: dict[str, str]) -> None:
    """Its settings exist and have allowed values; it is a command of ours, or a worker as `team` starts it."""
    assert set(environment) <= {declaration.name for declaration in declarations()}
    settings = Environment.read(environment)
    assert settings.team == (command[-1] != "serve")
    program, *words = command
    assert Path(program).name == "python"
    if words[0] == "manage.py":
        assert words[1] in get_commands()
        return
    wanted = Team().worker(0, of=1).command
    assert words[: len(wanted) - 3] == wanted[1:-2]


def test_processes_have_the_time_to_stop() -> None:
    """Longer than the grace time and the end after it."""
    units = [unit(path) for path in (FILES / "systemd").glob("*.service")]
    jobs = [plistlib.loads(path.read_bytes()) for path in (FILES / "launchd").glob("*.plist")]
    services = [service for service in compose().values() if "stop_grace_period" in service]
    times = [int(one["TimeoutStopSec"]) for one in units]
    times += [job["ExitTimeOut"] for job in jobs]
    times += [int(service["stop_grace_period"].removesuffix("s")) for service in services]
    longest = max(float(environment.get("RESPONSES_GRACE_SECONDS", 5)) for _, _, environment in PROCESSES)
    assert len(times) == 8
    assert min(times) >= longest + 20


def test_the_image_has_all_packages() -> None:
    """Every package of ours, and requirements files that exist."""
    lines = (FILES / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = {name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]}
    assert {"requirements", "manage.py", "inference", "responses_api", "responses_site", "templates"} <= copied
    assert all((BASE_DIR / name).exists() for name in copied)


def test_everything_that_the_page_names_exists() -> None:
    """Files, settings, commands."""
    page = (BASE_DIR / "docs" / "deployment.md").read_text(encoding="utf-8")
    names = set(re.findall(r"\b(?:RESPONSES_\w+|REDIS_URL|DATABASE_URL)\b", page))
    assert names <= {declaration.name for declaration in declarations()}
    assert set(re.findall(r"manage\.py (\w+)", page)) <= set(get_commands())
    for link in re.findall(r"\]\(([^)#]+)", page):
        assert (BASE_DIR / "docs" / link).exists(), link
    files = {path.relative_to(FILES.parent).as_posix() for path in FILES.rglob("*") if path.is_file()}
    assert files - set(re.findall(r"\]\(([^)#]+)", page)) == {"deployment/Dockerfile.dockerignore"}
