"""Chores: work for the whole deployment that one process at a time does."""

from typing import ClassVar

from django.db import models


class Chore(models.Model):
    """A chore, and the lease of the process that does it. Times are by the database's clock."""

    name = models.CharField(primary_key=True, max_length=40)
    holder = models.CharField(max_length=64, blank=True, help_text="The process that does it now or did it last.")
    until = models.DateTimeField(help_text="When another process may take it, unless the holder renews it.")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name
