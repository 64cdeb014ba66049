"""Counts of all processes, living and ended, in sum."""

from typing import ClassVar

from django.db import models


class Counter(models.Model):
    """A number that only grows. It carries no project, no key and no content, and outlives what it counted."""

    name = models.CharField(primary_key=True, max_length=200, help_text="As Prometheus names the series.")
    value = models.FloatField(help_text="Whole up to 2^53; sums of seconds have fractions.")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name
