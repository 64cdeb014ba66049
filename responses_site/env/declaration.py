"""The declaration of an environment variable, as a field of a dataclass with metadata."""

from dataclasses import dataclass, field
from typing import Any, Literal

from responses_site.setting_kinds import Invalid, Kind

Shape = Literal["both", "team"]


class SettingError(Exception):
    """A variable has an invalid value; the message is one line that names it and says what is allowed."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """The metadata of one variable: for parsing, for `docs/settings.md` and for Django's settings."""

    name: str
    kind: Kind
    help: str
    shape: Shape
    default_text: str
    becomes: str
    """The setting of Django or of a library that is made from it; empty when code reads it as `RESPONSES_…`."""

    def parse(self, text: str) -> Any:
        """The value. Raises `SettingError`."""
        try:
            return self.kind.parse(text)
        except Invalid:
            given = "" if self.kind.secret else f", not {text!r}"
            raise SettingError(f"{self.name} must be {self.kind.allowed}{given}.") from None


def setting(
    name: str,
    kind: Kind,
    default: Any,
    help: str,
    *,
    shape: Shape = "both",
    default_text: str | None = None,
    becomes: str = "",
) -> Any:
    """Declare one variable; `default_text` describes a default that is calculated."""
    shown = default_text if default_text is not None else f"`{kind.show(default)}`"
    declaration = Declaration(name, kind, help, shape, shown, becomes)
    return field(default=default, metadata={"declaration": declaration})
