"""Who asks: what authentication yields and every service and selector is scoped by."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from responses_api.models import ApiKey, Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A project, and the key that opened it (``None`` with open access)."""

    project: Project
    key: ApiKey | None = None

    @property
    def key_id(self) -> int | None:
        """The key's, if there is one."""
        return None if self.key is None else self.key.pk

    @property
    def name(self) -> str:
        """By what this process counts that is limited per key: the key, or without one the project."""
        return f"project-{self.project.pk}" if self.key is None else f"key-{self.key.pk}"

    @property
    def own(self) -> dict[str, Any]:
        """What a response or conversation must have for this caller to see it, as a filter of rows.

        With `RESPONSES_ISOLATION=key` a key sees what it made, and without keys that is what no key made.
        """
        if settings.RESPONSES_ISOLATION == "key":
            return {"project": self.project, "key": self.key}
        return {"project": self.project}

    @property
    def scope(self) -> str:
        """Who this caller is where something is kept for it: see :func:`cache_scope`."""
        return cache_scope(project_id=self.project.pk, key_id=None if self.key is None else self.key.pk)


def cache_scope(*, project_id: int, key_id: int | None) -> str:
    """The name of those who may see each other's responses: they share cached prompts, open each other's blobs, and
    have one share of what memory there is for histories.
    """
    if settings.RESPONSES_ISOLATION == "key" and key_id is not None:
        return f"key-{key_id}"
    return f"project-{project_id}"
