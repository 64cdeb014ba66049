"""Formats values for the admin's pages."""

from datetime import datetime
from typing import Any

import orjson
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from responses_api.models import Response, UsageRecord

SHOWN_JSON = 100_000
NOTHING = "\N{EN DASH}"


def badge(text: str, tone: str) -> SafeString:
    """A word on a coloured background. Tones: ``good``, ``busy``, ``warn``, ``bad``, ``quiet``."""
    return format_html('<span class="badge badge-{}">{}</span>', tone, text)


def code(text: str) -> SafeString:
    """An identifier."""
    return format_html('<code class="id">{}</code>', text)


def two_lines(first: str, second: str) -> SafeString:
    """A cell with a second, less prominent line."""
    return format_html('{}<span class="second">{}</span>', first, second)


def timestamp(value: datetime) -> str:
    """A time to the second, in the server's time zone."""
    return f"{timezone.localtime(value):%Y-%m-%d %H:%M:%S}"


def origin_of(row: Response | UsageRecord) -> str:
    """The project and, if any, the key of a row. Both have to be loaded with it."""
    return str(row.project) if row.key is None else f"{row.project} · {row.key.name}"


def file_size(size: int) -> str:
    """Bytes for people, in powers of 1,000 as disks are sold."""
    value, units = float(size), iter(("kB", "MB", "GB", "TB"))
    if value < 1000:
        return f"{size} bytes"
    unit = ""
    while value >= 1000:
        value, unit = value / 1000, next(units, "PB")
    return f"{value:.1f} {unit}"


def pretty_json(value: Any) -> str:
    """A value as indented JSON, cut at :data:`SHOWN_JSON` characters; never fails."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except (TypeError, ValueError):
        text = str(value)
    return shorten(text, SHOWN_JSON)


def shorten(text: str, limit: int) -> str:
    """The text, or its beginning and a note on its length."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n… (cut: {len(text):,} characters in all)"


def json_block(value: Any) -> SafeString:
    """Indented JSON on a page."""
    return format_html('<pre class="json">{}</pre>', pretty_json(value))
