"""Responses: the row is the stored object, the job and its place in the queue."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from responses_api.models.byte_length import ByteLength
from responses_api.protocol.json.reader import read_stored
from responses_api.protocol.objects import Response as ResponseObject


class Status(models.TextChoices):
    """OpenAI's states of a response."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = (Status.QUEUED, Status.IN_PROGRESS)


class Response(models.Model):
    """One generation, from its admission on.

    While it is active, ``request`` is the accepted request, and the lease columns name the worker that owns it:
    ``worker`` is empty while none does, ``attempt`` counts the claims, and every write of a worker is conditional on
    both (fencing). Once it has ended, ``turn`` has its items, and ``body`` is the response object without its output.
    """

    public_id = models.CharField("id", max_length=64, unique=True, editable=False)
    project = models.ForeignKey("Project", on_delete=models.CASCADE, related_name="responses")
    key = models.ForeignKey("ApiKey", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    model = models.CharField(max_length=200)
    status = models.CharField(max_length=16, choices=Status, default=Status.QUEUED)
    background = models.BooleanField(default=False)
    store = models.BooleanField(default=True)
    stream = models.BooleanField(default=False, help_text="Whether the client streams the events.")
    priority = models.PositiveSmallIntegerField(default=0, help_text="0 interactive, 1 background.")

    parent = models.ForeignKey(
        "Turn", on_delete=models.RESTRICT, null=True, blank=True, related_name="continuations", editable=False
    )
    turn = models.ForeignKey(
        "Turn", on_delete=models.RESTRICT, null=True, blank=True, related_name="responses", editable=False
    )
    conversation = models.ForeignKey(
        "Conversation",
        # Deleting a conversation updates no response: locking many rows could deadlock with workers, which do so too.
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        null=True,
        blank=True,
        related_name="responses",
        editable=False,
        help_text="The conversation whose history it read and to which its turn is added; it may have been deleted.",
    )
    previous_response_id = models.CharField(max_length=64, blank=True)
    request = models.TextField(blank=True, editable=False)
    body = models.TextField(blank=True, editable=False)
    size = models.GeneratedField(
        expression=ByteLength("request") + ByteLength("body"),
        output_field=models.IntegerField("bytes"),
        db_persist=True,
    )

    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When it was last stored, read or continued, to the minute; empty until it has ended.",
    )

    attempt = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=64, blank=True, help_text="The process that runs it, while it runs.")
    lease_until = models.DateTimeField(null=True, blank=True, help_text="By the database's clock.")
    lost_attempts = models.PositiveSmallIntegerField(
        db_column="losses",
        default=0,
        db_default=0,
        help_text="Lost attempts in a row, none of which persisted a new token.",
    )
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    reader = models.CharField(max_length=64, blank=True, help_text="The web process of a foreground reader.")

    input_tokens = models.PositiveIntegerField(null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    output_tokens = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [
            # Not partial: SQLite can't use a partial index when the query's condition has parameters.
            models.Index(fields=["status", "priority", "id"], name="response_status"),
            # Covers the counts of admission, which then read no rows.
            models.Index(fields=["status", "priority", "key", "size"], name="response_active"),
            models.Index(fields=["worker"], name="response_worker"),
            models.Index(fields=["created_at"], name="response_created"),
            models.Index(fields=["expires_at"], name="response_expiry", condition=Q(expires_at__isnull=False)),
            models.Index(fields=["project", "-id"], name="response_project"),
            # The order of eviction, of all projects and of one.
            models.Index(fields=["used_at", "id"], name="response_used"),
            models.Index(fields=["project", "used_at", "id"], name="response_project_used"),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def is_active(self) -> bool:
        """Whether the job has not ended."""
        return self.status in ACTIVE

    def body_dict(self) -> ResponseObject:
        """The response object without its output items."""
        value: ResponseObject = read_stored(self.body)
        return value
