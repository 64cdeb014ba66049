"""Removing revoked keys from the list."""

from collections.abc import Iterable

from responses_api.models import ApiKey

from .forget_owner import forget_owners


def delete_keys(*, keys: Iterable[ApiKey]) -> int:
    """Delete those of the keys that are revoked; returns how many. Usage that they account for stays.

    A key that still opens something is left alone: revoking it is the step that says so.
    """
    revoked = ApiKey.objects.filter(pk__in=[key.pk for key in keys], revoked_at__isnull=False)
    owners = list(revoked.values_list("project_id", "pk"))
    removed = revoked.delete()[1].get(ApiKey._meta.label, 0)
    for project_id, key_id in owners:
        forget_owners(project_id=project_id, key_ids=[key_id], whole=False)
    return removed
