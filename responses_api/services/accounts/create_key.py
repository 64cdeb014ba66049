"""Creates and revokes API keys."""

import secrets
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from responses_api.models import ApiKey, Project, User

from .authenticate import key_digest

PREFIX = "sk-mlx-"
SHOWN_CHARACTERS = len(PREFIX) + 6


@transaction.atomic
def create_key(
    *, project: Project, name: str, owner: User | None = None, expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """Create a key; returns the row and the secret, which is not stored and can't be shown again."""
    secret = PREFIX + secrets.token_urlsafe(32)
    key = ApiKey(
        project=project,
        name=name,
        owner=owner,
        expires_at=expires_at,
        prefix=secret[:SHOWN_CHARACTERS],
        digest=key_digest(secret),
    )
    key.full_clean()
    key.save()
    return key, secret


def revoke_key(*, key: ApiKey) -> None:
    """Revoke a key with immediate effect. Revoking it again doesn't change the recorded time."""
    ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())
