"""Changes a key's name and expiry."""

from datetime import datetime

from responses_api.models import ApiKey


def edit_key(*, key: ApiKey, name: str, expires_at: datetime | None) -> ApiKey:
    """Change a key's name and expiry. Raises :class:`django.core.exceptions.ValidationError`."""
    key.name = name
    key.expires_at = expires_at
    key.full_clean()
    key.save(update_fields=["name", "expires_at"])
    return key
