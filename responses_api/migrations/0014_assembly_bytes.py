"""How much of histories each process reads."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("responses_api", "0013_active_index")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="process",
            name="assembly_bytes",
            field=models.PositiveBigIntegerField(
                db_default=0, default=0, help_text="Bytes of histories that it reads."
            ),
        ),
    ]
