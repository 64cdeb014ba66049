"""Counts what the store holds where rows come and go, in place of a scan of all items."""

from collections import defaultdict
from typing import Any, ClassVar

import django.db.models.deletion
import orjson
from django.db import migrations, models

HISTORIES = """
    WITH RECURSIVE
    own(id, parent_id, bytes) AS (
        SELECT turn.id, turn.parent_id, COALESCE(SUM(item.size), 0) FROM responses_api_turn turn
        LEFT JOIN responses_api_turnitem entry ON entry.turn_id = turn.id
        LEFT JOIN responses_api_item item ON item.id = entry.item_id
        GROUP BY turn.id, turn.parent_id
    ),
    history(id, bytes) AS (
        SELECT id, bytes FROM own WHERE parent_id IS NULL
        UNION ALL
        SELECT own.id, history.bytes + own.bytes FROM own JOIN history ON own.parent_id = history.id
    )
    SELECT bytes, id FROM history
"""
ITEMS = "SELECT project_id, SUM(size) FROM responses_api_item GROUP BY project_id"
RESPONSES = """
    SELECT project_id, COUNT(*), SUM(size) FROM responses_api_response
    WHERE status NOT IN ('queued', 'in_progress') GROUP BY project_id
"""
CONVERSATIONS = """
    SELECT conversation.project_id, conversation.metadata, COALESCE(turn.history_bytes, 0)
    FROM responses_api_conversation conversation LEFT JOIN responses_api_turn turn ON turn.id = conversation.turn_id
"""


def count_what_is_there(apps: Any, schema_editor: Any) -> None:
    """The bytes of every history, and one change a project that stands for all before."""
    changes: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(HISTORIES)
        histories = cursor.fetchall()
        cursor.executemany("UPDATE responses_api_turn SET history_bytes = %s WHERE id = %s", histories)
        cursor.execute(ITEMS)
        for project, size in cursor.fetchall():
            changes[project][1] += size
        cursor.execute(RESPONSES)
        for project, responses, size in cursor.fetchall():
            changes[project][0] += responses
            changes[project][1] += size
        cursor.execute(CONVERSATIONS)
        for project, metadata, size in cursor.fetchall():
            value = orjson.loads(metadata) if isinstance(metadata, str) else metadata
            changes[project][1] -= size
            changes[project][2] += 1
            changes[project][3] += size + len(orjson.dumps(value))
        cursor.executemany(
            "INSERT INTO responses_api_storechange"
            " (project_id, responses, response_bytes, conversations, conversation_bytes) VALUES (%s, %s, %s, %s, %s)",
            [(project, *figures) for project, figures in changes.items()],
        )


class Migration(migrations.Migration):
    dependencies: ClassVar = [("responses_api", "0004_counters_and_sizes")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="StoreChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("responses", models.BigIntegerField(default=0, help_text="Responses that have ended.")),
                (
                    "response_bytes",
                    models.BigIntegerField(default=0, help_text="Their objects, and items that no conversation has."),
                ),
                ("conversations", models.BigIntegerField(default=0)),
                (
                    "conversation_bytes",
                    models.BigIntegerField(default=0, help_text="Their items and metadata."),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="responses_api.project"
                    ),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.RemoveIndex(model_name="item", name="item_size"),
        migrations.AddField(
            model_name="turn",
            name="history_bytes",
            field=models.PositiveBigIntegerField(
                default=0, help_text="Bytes of the items of the whole history, this turn's included."
            ),
        ),
        migrations.RunPython(count_what_is_there, migrations.RunPython.noop, elidable=True),
    ]
