"""Creates projects."""

from responses_api.models import Project


def create_project(*, name: str, store_default: bool | None = None) -> Project:
    """Create a project. Raises :class:`django.core.exceptions.ValidationError` when the name is taken or not usable."""
    project = Project(name=name, store_default=store_default)
    project.full_clean()
    project.save(force_insert=True)
    return project
