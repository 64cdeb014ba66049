"""All settings as one typed object, and the only place that reads the environment."""

import difflib
import ipaddress
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any

from responses_site.setting_kinds import SECRET

from .declaration import Declaration, SettingError
from .jobs import JobSettings
from .models import ModelSettings
from .processes import ProcessSettings
from .requests import RequestSettings
from .server import ServerSettings
from .store import StoreSettings

# Read by the Makefile and the tests, not by the server.
TOOL_NAMES = frozenset({"RESPONSES_TEST_STRICT"})

LOCAL_NAMES = (
    "localhost",
    "127.0.0.1",
    "[::1]",
    # The names of this machine in Docker's and in Podman's containers.
    "host.docker.internal",
    "host.containers.internal",
)
"""The names of this machine, as they are written in the `Host` header."""


@dataclass(frozen=True, kw_only=True)
class Environment(ProcessSettings, ModelSettings, JobSettings, RequestSettings, StoreSettings, ServerSettings):
    """All settings, checked; a dataclass has the fields of its last base first.

    Django's settings call `Environment.read(os.environ)`.
    """

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Environment":
        """The settings in `environ`; empty values count as unset. Raises `SettingError`."""
        values: dict[str, Any] = {}
        for attribute, declaration in _declarations():
            text = environ.get(declaration.name, "").strip()
            if text:
                values[attribute] = declaration.parse(text)
        environment = cls(**values)
        environment._check_shape()
        return environment

    def django_settings(self) -> dict[str, Any]:
        """The settings that code reads as `settings.RESPONSES_…`: all except those of Django and libraries."""
        return {
            f"RESPONSES_{attribute.upper()}": getattr(self, attribute)
            for attribute, declaration in _declarations()
            if not declaration.becomes
        }

    def _check_shape(self) -> None:
        if not self.team:
            return
        if not self.redis_url:
            raise SettingError("REDIS_URL is missing: it is required when RESPONSES_BROKER_URL is set.")
        if not self.postgresql:
            raise SettingError("DATABASE_URL must be a postgresql:// URL when REDIS_URL is set (the team shape).")
        if not self.secret_key:
            raise SettingError(
                f"RESPONSES_SECRET_KEY is missing: the team shape (REDIS_URL is set) needs {SECRET.allowed}, "
                "the same for every process."
            )

    @property
    def team(self) -> bool:
        """Whether web and worker processes are separate, and need a broker."""
        return bool(self.redis_url or self.broker_url)

    @property
    def postgresql(self) -> bool:
        return self.database_url.startswith(("postgresql:", "postgres:"))

    @property
    def open_access(self) -> bool:
        """Whether requests need no key until one is created, since only this machine can send any."""
        names_are_local = all(name.lower() in LOCAL_NAMES for name in self.allowed_hosts)
        return self.bound_to_loopback and names_are_local and not self.behind_tls and not self.team

    @property
    def bound_to_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


def _declarations() -> list[tuple[str, Declaration]]:
    declared: list[Field[Any]] = list(fields(Environment))
    return [(item.name, item.metadata["declaration"]) for item in declared]


def declarations() -> list[Declaration]:
    """All variables, in the order of the documentation."""
    return [declaration for _, declaration in _declarations()]


def unknown_names(environ: Mapping[str, str]) -> list[str]:
    """One sentence for each `RESPONSES_` variable that is not a setting, with the name that was probably meant."""
    known = {declaration.name for declaration in declarations()}
    sentences = []
    for name in sorted(environ):
        if not name.startswith("RESPONSES_") or name in known or name in TOOL_NAMES:
            continue
        close = difflib.get_close_matches(name, known, n=1)
        sentences.append(f"{name} is not a setting" + (f"; did you mean {close[0]}?" if close else "."))
    return sentences


def django_setting_types() -> dict[str, Any]:
    """The types of :meth:`Environment.django_settings`, by name."""
    declared: list[Field[Any]] = list(fields(Environment))
    return {
        f"RESPONSES_{item.name.upper()}": item.type for item in declared if not item.metadata["declaration"].becomes
    }
