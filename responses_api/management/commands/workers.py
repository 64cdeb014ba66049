"""`manage.py workers`: lists the live worker processes."""

import io
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone
from rich.console import Console
from rich.table import Table

from responses_api.management.fresh_database import ensure_tables
from responses_api.selectors.server_status import WorkerStatus, worker_statuses

FIGURES = ("PID", "Slots", "Running", "Waiting")


class Command(BaseCommand):
    help = "List the live worker processes of all machines."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        ensure_tables()
        workers = worker_statuses()
        if options["json"]:
            self.stdout.write(json.dumps([as_dict(worker) for worker in workers], indent=2))
            return
        if not workers:
            self.stdout.write("No worker is alive. `make serve`, or a team's worker process, starts one.")
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("Host", "PID", "Models", "Slots", "Running", "Waiting", "Since", "Last heard of"):
            table.add_column(title, justify="right" if title in FIGURES else "left")
        for worker in workers:
            figures = (str(figure) for figure in (worker.slots, worker.running, worker.waiting))
            since = f"{timezone.localtime(worker.started_at):%Y-%m-%d %H:%M:%S}"
            heard = f"{timezone.localtime(worker.heartbeat_at):%H:%M:%S}"
            table.add_row(worker.host, str(worker.pid), ", ".join(worker.models), *figures, since, heard)
        text = io.StringIO()
        # Wide enough for all names: a narrow terminal wraps lines, and a pipe gets whole lines.
        Console(file=text, width=1000).print(table)
        self.stdout.write("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def as_dict(worker: WorkerStatus) -> dict[str, Any]:
    """A worker as JSON: the object of `/v1/status`, with the time of the last heartbeat."""
    return {
        "host": worker.host,
        "pid": worker.pid,
        "models": list(worker.models),
        "slots": worker.slots,
        "running": worker.running,
        "waiting": worker.waiting,
        "started_at": int(worker.started_at.timestamp()),
        "heartbeat_at": int(worker.heartbeat_at.timestamp()),
    }
