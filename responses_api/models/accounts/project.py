"""Projects: the unit of isolation. Every stored row belongs to exactly one."""

from typing import ClassVar

from django.db import models

from responses_api.ids import new_id


def new_project_id() -> str:
    """A fresh public id for a project."""
    return new_id("proj_")


class Project(models.Model):
    """A team's space: its keys share responses, and nobody else sees them."""

    public_id = models.CharField("id", max_length=64, unique=True, default=new_project_id, editable=False)
    name = models.CharField(max_length=100, unique=True)
    store_default = models.BooleanField(
        "store responses by default",
        null=True,
        blank=True,
        help_text="What an omitted “store” means for this project. Unknown: the server's setting.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name
