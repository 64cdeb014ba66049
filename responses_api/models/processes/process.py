"""Rows of the server's processes, by which other processes find them and notice when they end."""

from typing import ClassVar

from django.db import models


class Process(models.Model):
    """A running web or worker process. Times are by the database's clock."""

    class Kind(models.TextChoices):
        WEB = "web"
        WORKER = "worker"

    id = models.CharField(primary_key=True, max_length=64)
    kind = models.CharField(max_length=8, choices=Kind)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    served_models = models.JSONField(db_column="offers", default=list, help_text="The models that a worker announces.")
    slots = models.PositiveIntegerField(default=0, help_text="Sequences generated at once.")
    running = models.PositiveIntegerField(default=0)
    waiting = models.PositiveIntegerField(default=0)
    assembly_bytes = models.PositiveBigIntegerField(
        default=0, db_default=0, help_text="Bytes of histories that it is reading."
    )
    step_seconds = models.FloatField(
        default=0.0, db_default=0.0, help_text="Age of the engine's current step, at the last heartbeat."
    )
    prompt_cache_bytes = models.PositiveBigIntegerField(
        default=0, db_default=0, help_text="Bytes of prompts that it has cached in memory."
    )
    prompt_cache_disk_bytes = models.PositiveBigIntegerField(
        default=0, db_default=0, help_text="Bytes of prompts cached on the disk of its host, by all processes."
    )

    class Meta:
        ordering: ClassVar = ["-heartbeat_at"]
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return f"{self.kind} {self.host}:{self.pid}"


class ServedModel(models.Model):
    """A model that a worker has served. The row stays after the worker has ended."""

    name = models.CharField(max_length=200, unique=True)
    aliases = models.JSONField(default=list)
    digest = models.CharField(max_length=80)
    context_length = models.PositiveIntegerField()
    weights = models.CharField(max_length=40, blank=True)
    source = models.CharField(max_length=300, blank=True)
    size_bytes = models.PositiveBigIntegerField(default=0)
    first_seen_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["name"]
        verbose_name = "model"

    def __str__(self) -> str:
        return self.name
