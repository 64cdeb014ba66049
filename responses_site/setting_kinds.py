"""The kinds of values of settings: each describes what is allowed, and parses a text."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

BASE_DIR = Path(__file__).resolve().parent.parent
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class Invalid(Exception):
    """A text is not a valid value of a kind."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of value: a description of what is allowed, and the parser of its text, which raises `Invalid`."""

    allowed: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str] = str
    secret: bool = False  # a value that may contain a password is never printed


def _reject_unless(condition: bool) -> None:
    if not condition:
        raise Invalid


def _text(value: str) -> str:
    return value


def integer(low: int, high: int | None = None) -> Kind:
    def parse(value: str) -> int:
        _reject_unless(bool(re.fullmatch(r"[+-]?[0-9]{1,18}", value)))
        number = int(value)
        _reject_unless(number >= low and (high is None or number <= high))
        return number

    return Kind(f"a whole number from {low}" + (f" to {high}" if high is not None else " up"), parse)


def seconds(low: float, *, above: bool = False) -> Kind:
    def parse(value: str) -> float:
        _reject_unless(bool(re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", value)))
        number = float(value)
        _reject_unless(number > low if above else number >= low)
        return number

    return Kind(f"a number of seconds {'above' if above else 'from'} {low:g}", parse, lambda value: f"{value:g}")


def _show_bytes(value: int) -> str:
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if value and value % unit == 0:
            return f"{value // unit}{name}"
    return str(value)


def byte_count(low: int) -> Kind:
    units = {"": 1, "B": 1, "KIB": KIB, "MIB": MIB, "GIB": GIB}

    def parse(value: str) -> int:
        match = re.fullmatch(r"([0-9]{1,15})\s*([A-Za-z]*)", value)
        if match is None or match[2].upper() not in units:
            raise Invalid
        number = int(match[1]) * units[match[2].upper()]
        _reject_unless(number >= low)
        return number

    return Kind(f"a number of bytes from {low}, such as 1048576 or 64MiB", parse, _show_bytes)


def choice(*values: str) -> Kind:
    def parse(value: str) -> str:
        _reject_unless(value.lower() in values)
        return value.lower()

    return Kind("one of " + ", ".join(values), parse)


def number_among(*values: int) -> Kind:
    numbers = {str(value): value for value in values}

    def parse(value: str) -> int:
        _reject_unless(value in numbers)
        return numbers[value]

    return Kind("one of " + ", ".join(numbers), parse)


def _parse_boolean(value: str) -> bool:
    values = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    _reject_unless(value.lower() in values)
    return values[value.lower()]


def _parse_names(value: str) -> tuple[str, ...]:
    return tuple(name for part in value.split(",") if (name := part.strip()))


def _parse_origins(value: str) -> tuple[str, ...]:
    origins = _parse_names(value)
    for origin in origins:
        parts = urlsplit(origin)
        _reject_unless(parts.scheme in ("http", "https") and bool(parts.netloc) and parts.path in ("", "/"))
    return tuple(origin.rstrip("/") for origin in origins)


def _parse_cors_origins(value: str) -> tuple[str, ...]:
    origins = tuple(name.rstrip("/").lower() for name in _parse_names(value))
    for origin in origins:
        # Any scheme, since browser extensions and desktop applications have their own.
        _reject_unless(origin == "*" or bool(re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#@\s*]+", origin)))
    return origins


def _parse_address(value: str) -> str:
    value = value.strip("[]")
    try:
        ipaddress.ip_address(value)
    except ValueError:
        # A host name; a value of digits and dots only is a mistyped address.
        _reject_unless(bool(re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", value)))
        _reject_unless(bool(re.search(r"[A-Za-z]", value)))
    return value


def url(*schemes: str) -> Kind:
    def parse(value: str) -> str:
        try:
            parts = urlsplit(value)
            _ = parts.port  # raises on a bad port
        except ValueError:
            raise Invalid from None
        _reject_unless(parts.scheme in schemes)
        _reject_unless(bool(parts.hostname) or parts.scheme == "sqlite" or bool(parts.path.strip("/")))
        return value

    return Kind("a URL that begins with " + " or ".join(f"{scheme}://" for scheme in schemes), parse, secret=True)


def _show_names(value: tuple[str, ...]) -> str:
    return ",".join(value)


def _parse_directory(value: str) -> Path:
    try:
        return (BASE_DIR / Path(value).expanduser()).resolve()
    except (ValueError, RuntimeError, OSError):  # a NUL, an unknown user's home, a loop of links
        raise Invalid from None


def _parse_secret(value: str) -> str:
    _reject_unless(len(value) >= 50 and len(set(value)) >= 5)
    return value


def _parse_secrets(value: str) -> tuple[str, ...]:
    return tuple(_parse_secret(name) for name in _parse_names(value))


TEXT = Kind("any text", _text)
BOOLEAN = Kind("true or false", _parse_boolean, lambda value: str(value).lower())
NAMES = Kind("names separated by commas", _parse_names, _show_names)
ORIGINS = Kind("origins such as https://llm.example.com, separated by commas", _parse_origins, _show_names)
CORS_ORIGINS = Kind(
    "origins such as https://chat.example.com, separated by commas, or * for any", _parse_cors_origins, _show_names
)
ADDRESS = Kind("an IP address or a host name", _parse_address)
DIRECTORY = Kind("a directory", _parse_directory)
SECRET = Kind("at least 50 random characters", _parse_secret, secret=True)
SECRETS = Kind(
    "secrets of at least 50 random characters, separated by commas", _parse_secrets, _show_names, secret=True
)
