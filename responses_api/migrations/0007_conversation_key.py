"""Which key made a conversation: what `RESPONSES_ISOLATION=key` goes by."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("responses_api", "0006_recency")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="conversation",
            name="key",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="responses_api.apikey",
            ),
        )
    ]
