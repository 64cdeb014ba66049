"""Finds keys that are no longer valid, for the streams that were opened with them."""

from collections.abc import Collection

from django.db.models import Q
from django.db.models.functions import Now

from responses_api.models import ApiKey


def lapsed_keys(key_ids: Collection[int]) -> set[int]:
    """The keys that are revoked, expired or deleted, by one query."""
    usable = ApiKey.objects.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), pk__in=key_ids, revoked_at=None)
    return set(key_ids) - set(usable.values_list("pk", flat=True))
