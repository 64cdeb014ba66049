"""Whether an API key was ever created."""

from django.db import models


class FirstKey(models.Model):
    """Has one row once a key was created, even if the key is deleted: from then on, every request needs a key.

    A database trigger writes it with the first row of the table of keys, in the same transaction, however the key is
    created. Nothing removes it.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.made_at:%Y-%m-%d}"
