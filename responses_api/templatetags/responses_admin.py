"""Filters for the admin's templates."""

from datetime import datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from responses_api.admin.elements.excerpt import excerpt as excerpt_of
from responses_api.admin.store.responses import status_badge as badge_of

register = template.Library()


@register.filter
def grouped(value: int) -> str:
    """A number with thousands separators."""
    return f"{value:,}"


@register.filter
def status_badge(value: str) -> SafeString:
    """A response's status, coloured."""
    return badge_of(value)


@register.filter
def excerpt(head: str | None, length: int) -> str:
    """The first words of a stored item, taken from the head of its payload."""
    return excerpt_of(head, length) or "(no text)"


@register.filter
def ago(timestamp: datetime) -> str:
    """The time that has passed since a timestamp, in words."""
    return f"{timesince(timestamp)} ago" if timezone.now() - timestamp >= timedelta(minutes=1) else "just now"
