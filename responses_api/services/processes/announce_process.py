"""Heartbeats of processes, and what workers offer."""

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
    """What a process says of itself."""

    id: str
    kind: Process.Kind
    slots: int = 0
    running: int = 0
    waiting: int = 0
    offers: list[dict[str, Any]] = field(default_factory=list)


def announce_process(announcement: Announcement) -> None:
    """Write or refresh a process's row, which nobody else writes."""
    values = {
        "heartbeat_at": Now(),
        "slots": announcement.slots,
        "running": announcement.running,
        "waiting": announcement.waiting,
        "offers": announcement.offers,
        "assembly_bytes": bytes_in_flight(),
    }
    mine = Process.objects.filter(pk=announcement.id)
    if not mine.update(**values):
        about = {"kind": announcement.kind, "host": socket.gethostname(), "pid": os.getpid(), "started_at": Now()}
        # Two threads of a process may find that there is no row yet.
        Process.objects.bulk_create([Process(id=announcement.id, **about, **values)], ignore_conflicts=True)


def announce_models(offers: list[dict[str, Any]]) -> None:
    """Record the models that a worker offers, for the admin; they stay listed when the worker is gone."""
    for offer in offers:
        ServedModel.objects.update_or_create(
            name=offer["name"],
            defaults={
                "aliases": offer["aliases"],
                "digest": offer["digest"],
                "context_length": offer["context_length"],
                "weights": offer["weights"],
                "source": offer["source"],
                "size_bytes": offer["size_bytes"],
                "last_seen_at": Now(),
            },
        )


def forget_process(process_id: str) -> None:
    """Remove the row of a process that ends in order, and tell the last of what it has counted."""
    publish_counts()
    Process.objects.filter(pk=process_id).delete()
