"""Conversations: a movable pointer into the tree of turns, as a branch is in git."""

from typing import ClassVar

from django.db import models
from django.db.models import Q


class Conversation(models.Model):
    """A history with a name. Its items are those of ``turn`` and of its ancestors; without a turn it is empty."""

    public_id = models.CharField("id", max_length=64, unique=True, editable=False)
    project = models.ForeignKey("Project", on_delete=models.CASCADE, related_name="conversations")
    key = models.ForeignKey("ApiKey", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    turn = models.ForeignKey(
        "Turn", on_delete=models.RESTRICT, null=True, blank=True, related_name="conversations", editable=False
    )
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Counted from the last turn.")
    used_at = models.DateTimeField(
        editable=False, help_text="When it was changed or read last, the latter to the minute."
    )

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [
            models.Index(fields=["expires_at"], name="conversation_expiry", condition=Q(expires_at__isnull=False)),
            models.Index(fields=["project", "-id"], name="conversation_project"),
            models.Index(fields=["used_at", "id"], name="conversation_used"),
        ]

    def __str__(self) -> str:
        return self.public_id
