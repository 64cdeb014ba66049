"""Renaming projects and choosing what they store."""

from responses_api.models import Project


def edit_project(*, project: Project, name: str, store_default: bool | None) -> Project:
    """Change what may be changed of a project. Raises :class:`django.core.exceptions.ValidationError`."""
    project.name = name
    project.store_default = store_default
    project.full_clean()
    project.save(update_fields=["name", "store_default"])
    return project
