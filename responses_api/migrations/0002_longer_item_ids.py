"""Item ids as long as clients may make them."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("responses_api", "0001_initial")]

    operations: ClassVar = [
        migrations.AlterField(
            model_name="item", name="wire_id", field=models.CharField(max_length=256, verbose_name="id")
        )
    ]
