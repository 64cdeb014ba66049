"""Creates users with all permissions in the admin."""

from django.contrib.auth.password_validation import validate_password
from django.db import transaction

from responses_api.models import User


@transaction.atomic
def create_administrator(*, username: str, password: str) -> User:
    """Create an administrator. Raises :class:`django.core.exceptions.ValidationError` for a bad name or password."""
    user = User(username=User.normalize_username(username), is_staff=True, is_superuser=True)
    user.set_password(password)
    user.full_clean(exclude=["password"])
    validate_password(password, user)
    user.save(force_insert=True)
    return user
