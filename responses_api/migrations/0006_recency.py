"""When responses and conversations were used last: the order in which they are evicted."""

from typing import Any, ClassVar

from django.db import migrations, models
from django.db.models import F
from django.db.models.functions import Coalesce


def use_when_made(apps: Any, schema_editor: Any) -> None:
    """What is there was used last when it was made."""
    ended = apps.get_model("responses_api", "Response").objects.exclude(status__in=("queued", "in_progress"))
    ended.update(used_at=Coalesce(F("completed_at"), F("created_at")))
    apps.get_model("responses_api", "Conversation").objects.update(used_at=F("created_at"))


class Migration(migrations.Migration):
    dependencies: ClassVar = [("responses_api", "0005_store_changes")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="response",
            name="used_at",
            field=models.DateTimeField(
                blank=True,
                editable=False,
                help_text="When it was stored, read or continued last, to the minute; empty until it has ended.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="used_at",
            field=models.DateTimeField(
                editable=False, help_text="When it was changed or read last, the latter to the minute.", null=True
            ),
        ),
        migrations.RunPython(use_when_made, migrations.RunPython.noop, elidable=True),
        migrations.AlterField(
            model_name="conversation",
            name="used_at",
            field=models.DateTimeField(
                editable=False, help_text="When it was changed or read last, the latter to the minute."
            ),
        ),
        migrations.AddIndex(model_name="response", index=models.Index(fields=["used_at", "id"], name="response_used")),
        migrations.AddIndex(
            model_name="response",
            index=models.Index(fields=["project", "used_at", "id"], name="response_project_used"),
        ),
        migrations.AddIndex(
            model_name="conversation", index=models.Index(fields=["used_at", "id"], name="conversation_used")
        ),
    ]
