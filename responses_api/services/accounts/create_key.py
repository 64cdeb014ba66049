"""Making and revoking API keys."""

import secrets
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from responses_api.models import ApiKey, Project, User

from .authenticate import key_digest

PREFIX = "sk-mlx-"
SHOWN = len(PREFIX) + 6


@transaction.atomic
def create_key(
    *, project: Project, name: str, owner: User | None = None, expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """Make a key; returns the row and the secret, which is nowhere kept and can't be shown again."""
    secret = PREFIX + secrets.token_urlsafe(32)
    key = ApiKey(
        project=project,
        name=name,
        owner=owner,
        expires_at=expires_at,
        prefix=secret[:SHOWN],
        digest=key_digest(secret),
    )
    key.full_clean()
    key.save()
    return key, secret


def revoke_key(*, key: ApiKey) -> None:
    """End a key at once. Revoking twice keeps the first time."""
    ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())
