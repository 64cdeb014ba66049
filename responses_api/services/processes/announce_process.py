"""Heartbeats of processes, and the models that workers serve."""

import os
import socket
from dataclasses import dataclass, field
from typing import Any

from django.db.models.functions import Now

from responses_api.models import Process, ServedModel
from responses_api.services.prompts.assemble_history import bytes_in_flight

from .publish_counts import publish_counts


@dataclass(slots=True, kw_only=True)
class Announcement:
    """The state of a process, for its row."""

    id: str
    kind: Process.Kind
    slots: int = 0
    running: int = 0
    waiting: int = 0
    step_seconds: float = 0.0
    """Age of the oldest step that an engine of a worker runs now."""
    models: list[dict[str, Any]] = field(default_factory=list)
    prompt_cache_bytes: int = 0
    prompt_cache_disk_bytes: int = 0


def announce_process(announcement: Announcement) -> None:
    """Create or update a process's row, which no other process writes."""
    values = {
        "heartbeat_at": Now(),
        "slots": announcement.slots,
        "running": announcement.running,
        "waiting": announcement.waiting,
        "step_seconds": announcement.step_seconds,
        "served_models": announcement.models,
        "assembly_bytes": bytes_in_flight(),
        "prompt_cache_bytes": announcement.prompt_cache_bytes,
        "prompt_cache_disk_bytes": announcement.prompt_cache_disk_bytes,
    }
    row = Process.objects.filter(pk=announcement.id)
    if not row.update(**values):
        constant = {"kind": announcement.kind, "host": socket.gethostname(), "pid": os.getpid(), "started_at": Now()}
        # Two threads of a process may both find that there is no row yet.
        Process.objects.bulk_create([Process(id=announcement.id, **constant, **values)], ignore_conflicts=True)


def announce_models(models: list[dict[str, Any]]) -> None:
    """Record the models that a worker serves, for the admin; they stay listed after the worker has ended."""
    for model in models:
        ServedModel.objects.update_or_create(
            name=model["name"],
            defaults={
                "aliases": model["aliases"],
                "digest": model["digest"],
                "context_length": model["context_length"],
                "weights": model["weights"],
                "source": model["source"],
                "size_bytes": model["size_bytes"],
                "last_seen_at": Now(),
            },
        )


def forget_process(process_id: str) -> None:
    """Remove the row of a process that shuts down, after publishing its last counts."""
    publish_counts()
    Process.objects.filter(pk=process_id).delete()
