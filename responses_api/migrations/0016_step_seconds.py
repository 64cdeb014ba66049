"""How long the current step of each worker's engines has run."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("responses_api", "0015_plain_names")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="process",
            name="step_seconds",
            field=models.FloatField(
                db_default=0.0, default=0.0, help_text="Age of the engine's current step, at the last heartbeat."
            ),
        ),
    ]
