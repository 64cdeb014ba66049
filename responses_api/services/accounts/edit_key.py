"""Renaming keys and moving their expiry."""

from datetime import datetime

from responses_api.models import ApiKey


def edit_key(*, key: ApiKey, name: str, expires_at: datetime | None) -> ApiKey:
    """Change the two things of a key that may change. Raises :class:`django.core.exceptions.ValidationError`."""
    key.name = name
    key.expires_at = expires_at
    key.full_clean()
    key.save(update_fields=["name", "expires_at"])
    return key
