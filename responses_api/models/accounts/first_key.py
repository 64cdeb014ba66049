"""That a key was ever made."""

from django.db import models


class FirstKey(models.Model):
    """One row once a key was made, whatever becomes of the key: from then on, every request needs one.

    A trigger of the database writes it with the first row of the keys' table, in the same transaction, so that no way
    of making a key goes past it. Nothing removes it.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.made_at:%Y-%m-%d}"
