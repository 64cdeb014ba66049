"""The caller of a request: the result of authentication, to which every service and selector is scoped."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from responses_api.models import ApiKey, Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A project, and the key of the request (``None`` with open access)."""

    project: Project
    key: ApiKey | None = None

    @property
    def key_id(self) -> int | None:
        """The key's primary key, if there is a key."""
        return None if self.key is None else self.key.pk

    @property
    def name(self) -> str:
        """The name under which this process applies limits per key: that of the key, or without one of the project."""
        return f"project-{self.project.pk}" if self.key is None else f"key-{self.key.pk}"

    @property
    def own(self) -> dict[str, Any]:
        """The filter of the responses and conversations that this caller may see.

        With `RESPONSES_ISOLATION=key` a key sees its own rows, and open access those without a key.
        """
        if settings.RESPONSES_ISOLATION == "key":
            return {"project": self.project, "key": self.key}
        return {"project": self.project}

    @property
    def scope(self) -> str:
        """The caller's scope of caches, blobs and memory: see :func:`cache_scope`."""
        return cache_scope(project_id=self.project.pk, key_id=None if self.key is None else self.key.pk)


def cache_scope(*, project_id: int, key_id: int | None) -> str:
    """The name of a group of callers that may see each other's responses: they share cached prompts, can open each
    other's blobs, and have one share of the memory for histories.
    """
    if settings.RESPONSES_ISOLATION == "key" and key_id is not None:
        return f"key-{key_id}"
    return f"project-{project_id}"
