"""The size of the store as a sum of recorded changes, so that no table has to be scanned for it."""

from typing import ClassVar

from django.db import models


class StoreChange(models.Model):
    """The change of the store's size by one transaction; the sum of all rows is the size of the store.

    One row per change, not one total per project, so that concurrent transactions don't wait for each other. The sweep
    adds them up (`services/store/store_changes.py`). An item counts once: as its conversation's while a conversation
    has it, otherwise as the responses'.
    """

    project = models.ForeignKey("Project", on_delete=models.CASCADE, related_name="+")
    responses = models.BigIntegerField(default=0, help_text="Responses that have ended.")
    response_bytes = models.BigIntegerField(default=0, help_text="Their objects, and items that no conversation has.")
    conversations = models.BigIntegerField(default=0)
    conversation_bytes = models.BigIntegerField(default=0, help_text="Their items and metadata.")

    class Meta:
        ordering: ClassVar = ["pk"]

    def __str__(self) -> str:
        return f"store change {self.pk}"

    @property
    def is_nothing(self) -> bool:
        """Whether it changes no figure."""
        return not (self.responses or self.response_bytes or self.conversations or self.conversation_bytes)
