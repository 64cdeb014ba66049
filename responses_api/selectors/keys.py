"""Which keys open nothing any more, for those who read by them."""

from collections.abc import Collection

from django.db.models import Q
from django.db.models.functions import Now

from responses_api.models import ApiKey


def lapsed_keys(key_ids: Collection[int]) -> set[int]:
    """Those of the keys that are revoked, expired or gone, by one query."""
    usable = ApiKey.objects.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), pk__in=key_ids, revoked_at=None)
    return set(key_ids) - set(usable.values_list("pk", flat=True))
