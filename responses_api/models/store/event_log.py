"""The data of a running background job: its events for readers, and the state with which another worker resumes it."""

from typing import ClassVar

from django.db import models


class EventBatch(models.Model):
    """One flush of a job's event log. A job's batches, in the order of ``number``, are its complete stream.

    They are deleted explicitly before a job's row: a cascade would make each deletion of a foreground response two
    steps, between which another process may claim it.
    """

    response = models.ForeignKey("Response", on_delete=models.DO_NOTHING, related_name="event_batches", db_index=False)
    number = models.PositiveIntegerField(help_text="Counts a job's batches from 0.")
    attempt = models.PositiveIntegerField(help_text="The claim under which it was written; 0 is the admission.")
    first = models.PositiveIntegerField(help_text="The sequence number of its first event.")
    last = models.IntegerField(help_text="The sequence number of its last event; one less than `first` without events.")
    is_end = models.BooleanField(default=False, help_text="Whether the job's last event is in it.")
    data = models.TextField(blank=True, help_text="One line per event: its type, a space, its JSON.")
    chunks = models.TextField(blank=True, help_text="The engine's chunks since the previous batch, as JSON.")
    total_bytes = models.PositiveBigIntegerField(help_text="Bytes of all events so far.")

    class Meta:
        ordering: ClassVar = ["response", "number"]
        verbose_name_plural = "event batches"
        constraints: ClassVar = [models.UniqueConstraint(fields=["response", "number"], name="event_batch_number")]
        indexes: ClassVar = [models.Index(fields=["response", "last"], name="event_batch_last")]

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


class Checkpoint(models.Model):
    """How a running job was prepared. With its batches, this is all that another worker needs to resume it."""

    response = models.OneToOneField("Response", on_delete=models.DO_NOTHING, related_name="checkpoint")
    digest = models.CharField(max_length=80, help_text="The model's digest: only the same model can resume the job.")
    version = models.PositiveIntegerField(help_text="The version of the code that turns chunks into events.")
    prompt = models.TextField(help_text="The prompt's token ids, as JSON; empty when nothing is generated.")
    compacted = models.TextField(blank=True, help_text="The compaction before the answer, as JSON.")
    spent = models.TextField(blank=True, help_text="The tokens of the compaction, as JSON.")

    def __str__(self) -> str:
        return f"checkpoint of {self.response_id}"
