"""Filters for the admin's templates."""

from django import template
from django.utils.safestring import SafeString

from responses_api.admin.excerpt import excerpt as excerpt_of
from responses_api.admin.responses import status_badge as badge_of

register = template.Library()


@register.filter
def grouped(value: int) -> str:
    """A number with its thousands apart."""
    return f"{value:,}"


@register.filter
def status_badge(value: str) -> SafeString:
    """A response's status, coloured."""
    return badge_of(value)


@register.filter
def excerpt(head: str | None, length: int) -> str:
    """The first words of a stored item, found in the head of its payload."""
    return excerpt_of(head, length) or "(no text)"
