"""How many bytes of prompts each worker has cached."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("responses_api", "0016_step_seconds")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="process",
            name="prompt_cache_bytes",
            field=models.PositiveBigIntegerField(
                db_default=0, default=0, help_text="Bytes of prompts that it has cached in memory."
            ),
        ),
        migrations.AddField(
            model_name="process",
            name="prompt_cache_disk_bytes",
            field=models.PositiveBigIntegerField(
                db_default=0, default=0, help_text="Bytes of prompts cached on the disk of its host, by all processes."
            ),
        ),
    ]
