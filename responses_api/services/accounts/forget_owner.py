"""Makes workers drop what they have cached of a deleted project or key."""

from collections.abc import Iterable

from responses_api import bus
from responses_api.bus.messages import ForgetScopes
from responses_api.caller import cache_scope
from responses_api.models import ApiKey, Project
from responses_api.selectors.models import get_live_workers


def existing_scopes() -> frozenset[str]:
    """The scopes of all projects and keys; what is cached of others can go."""
    projects = {
        cache_scope(project_id=project, key_id=None) for project in Project.objects.values_list("pk", flat=True)
    }
    keys = ApiKey.objects.values_list("project_id", "pk")
    return frozenset(projects | {cache_scope(project_id=project, key_id=key) for project, key in keys})


def forget_owners(*, project_id: int, key_ids: Iterable[int] = (), whole: bool = True) -> None:
    """Tell every live worker to drop cached prompts and remembered thinking of these keys, or of the whole project."""
    scopes = {cache_scope(project_id=project_id, key_id=key_id) for key_id in key_ids}
    if whole:
        scopes.add(cache_scope(project_id=project_id, key_id=None))
    else:
        scopes.discard(cache_scope(project_id=project_id, key_id=None))
    if not scopes:
        return
    for worker, _ in get_live_workers().workers:
        bus.publish(bus.process_group(worker), ForgetScopes(scopes=tuple(sorted(scopes))))
