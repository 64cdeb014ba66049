"""Names and help texts of fields. No column changes, so processes of the previous version can run beside this one."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("responses_api", "0014_assembly_bytes")]

    operations: ClassVar = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("process", "offers", "served_models"),
                migrations.RenameField("response", "losses", "lost_attempts"),
                migrations.AlterField(
                    model_name="checkpoint",
                    name="compacted",
                    field=models.TextField(blank=True, help_text="The compaction before the answer, as JSON."),
                ),
                migrations.AlterField(
                    model_name="checkpoint",
                    name="digest",
                    field=models.CharField(
                        help_text="The model's digest: only the same model can resume the job.", max_length=80
                    ),
                ),
                migrations.AlterField(
                    model_name="checkpoint",
                    name="spent",
                    field=models.TextField(blank=True, help_text="The tokens of the compaction, as JSON."),
                ),
                migrations.AlterField(
                    model_name="checkpoint",
                    name="version",
                    field=models.PositiveIntegerField(
                        help_text="The version of the code that turns chunks into events."
                    ),
                ),
                migrations.AlterField(
                    model_name="chore",
                    name="holder",
                    field=models.CharField(
                        blank=True, help_text="The process that does it now or did it last.", max_length=64
                    ),
                ),
                migrations.AlterField(
                    model_name="chore",
                    name="until",
                    field=models.DateTimeField(
                        help_text="When another process may take it, unless the holder renews it."
                    ),
                ),
                migrations.AlterField(
                    model_name="eventbatch",
                    name="chunks",
                    field=models.TextField(
                        blank=True, help_text="The engine's chunks since the previous batch, as JSON."
                    ),
                ),
                migrations.AlterField(
                    model_name="eventbatch",
                    name="data",
                    field=models.TextField(blank=True, help_text="One line per event: its type, a space, its JSON."),
                ),
                migrations.AlterField(
                    model_name="eventbatch",
                    name="last",
                    field=models.IntegerField(
                        help_text="The sequence number of its last event; one less than `first` without events."
                    ),
                ),
                migrations.AlterField(
                    model_name="eventbatch",
                    name="total_bytes",
                    field=models.PositiveBigIntegerField(help_text="Bytes of all events so far."),
                ),
                migrations.AlterField(
                    model_name="process",
                    name="assembly_bytes",
                    field=models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="Bytes of histories that it is reading."
                    ),
                ),
                migrations.AlterField(
                    model_name="process",
                    name="served_models",
                    field=models.JSONField(
                        db_column="offers", default=list, help_text="The models that a worker announces."
                    ),
                ),
                migrations.AlterField(
                    model_name="response",
                    name="conversation",
                    field=models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        editable=False,
                        help_text="The conversation whose history it read and to which its turn is added; it may have been deleted.",
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="responses",
                        to="responses_api.conversation",
                    ),
                ),
                migrations.AlterField(
                    model_name="response",
                    name="lost_attempts",
                    field=models.PositiveSmallIntegerField(
                        db_column="losses",
                        db_default=0,
                        default=0,
                        help_text="Lost attempts in a row, none of which persisted a new token.",
                    ),
                ),
                migrations.AlterField(
                    model_name="response",
                    name="reader",
                    field=models.CharField(
                        blank=True, help_text="The web process of a foreground reader.", max_length=64
                    ),
                ),
                migrations.AlterField(
                    model_name="response",
                    name="stream",
                    field=models.BooleanField(default=False, help_text="Whether the client streams the events."),
                ),
                migrations.AlterField(
                    model_name="response",
                    name="used_at",
                    field=models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="When it was last stored, read or continued, to the minute; empty until it has ended.",
                        null=True,
                    ),
                ),
            ]
        ),
    ]
