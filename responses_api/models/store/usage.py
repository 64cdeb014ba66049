"""Accounting: the tokens of each key and project, without content, so that it outlives the responses."""

from typing import ClassVar

from django.db import models


class UsageRecord(models.Model):
    """The figures of one ended generation."""

    project = models.ForeignKey("Project", on_delete=models.CASCADE, related_name="usage")
    key = models.ForeignKey("ApiKey", on_delete=models.SET_NULL, null=True, blank=True, related_name="usage")
    response_id = models.CharField(max_length=64)
    model = models.CharField(max_length=200)
    status = models.CharField(max_length=16)
    created_at = models.DateTimeField(db_index=True)
    input_tokens = models.PositiveIntegerField()
    cached_tokens = models.PositiveIntegerField()
    output_tokens = models.PositiveIntegerField()
    reasoning_tokens = models.PositiveIntegerField(default=0)
    first_token_ms = models.PositiveIntegerField(null=True, help_text="From admission to the first token.")
    duration_ms = models.PositiveIntegerField(help_text="From admission to the end.")

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [models.Index(fields=["project", "created_at"], name="usage_project_created")]

    def __str__(self) -> str:
        return self.response_id
