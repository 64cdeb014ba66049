"""Changes a project's name and whether it stores responses."""

from responses_api.models import Project


def edit_project(*, project: Project, name: str, store_default: bool | None) -> Project:
    """Change a project's name and its default of `store`. Raises :class:`django.core.exceptions.ValidationError`."""
    project.name = name
    project.store_default = store_default
    project.full_clean()
    project.save(update_fields=["name", "store_default"])
    return project
