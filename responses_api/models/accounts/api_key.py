"""API keys: high-entropy secrets of which only a prefix and a digest are stored."""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone


class ApiKey(models.Model):
    """A key of a project. The secret is shown once, when the key is created.

    A random secret of 256 bits needs no slow password hash: it can't be guessed from its SHA-256, and a slow hash would
    cost every request a fifth of a second.
    """

    project = models.ForeignKey("Project", on_delete=models.CASCADE, related_name="keys")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="api_keys"
    )
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, db_index=True, editable=False)
    digest = models.CharField("SHA-256", max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty: never.")
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="To the minute.")
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = "API key"
        ordering: ClassVar = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def is_usable(self, now: datetime | None = None) -> bool:
        """Whether the key is valid: neither revoked nor expired."""
        now = now or timezone.now()
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)
