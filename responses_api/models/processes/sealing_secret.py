"""The secret that this database's blobs are sealed with."""

from django.db import models


class SealingSecret(models.Model):
    """One row: the fingerprint of the secret, never the secret. Every process must have the same one."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    fingerprint = models.CharField(max_length=64)

    def __str__(self) -> str:
        return self.fingerprint[:12]
