"""Sums of the counts of all processes, including those that have ended."""

from typing import ClassVar

from django.db import models


class Counter(models.Model):
    """A number that only increases. It names no project, key or content, and outlives the rows that it counts."""

    name = models.CharField(primary_key=True, max_length=200, help_text="As Prometheus names the series.")
    value = models.FloatField(help_text="Whole up to 2^53; sums of seconds have fractions.")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name
