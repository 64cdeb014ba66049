from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

# A key may be made by the command, the admin, the ORM, or a restored dump: the database sees them all.
SQLITE = [
    """
    CREATE TRIGGER responses_api_first_key AFTER INSERT ON responses_api_apikey
    BEGIN
        INSERT INTO responses_api_firstkey (id, made_at)
        SELECT 1, strftime('%Y-%m-%d %H:%M:%f', 'now')
        WHERE NOT EXISTS (SELECT 1 FROM responses_api_firstkey);
    END
    """,
]
POSTGRESQL = [
    """
    CREATE FUNCTION responses_api_first_key() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO responses_api_firstkey (id, made_at) VALUES (1, now()) ON CONFLICT DO NOTHING;
        RETURN NULL;
    END
    $$
    """,
    """
    CREATE TRIGGER responses_api_first_key AFTER INSERT ON responses_api_apikey
    FOR EACH ROW EXECUTE FUNCTION responses_api_first_key()
    """,
]
# Keys that are deleted leave a gap in the numbers of their rows.
EVER_NUMBERED = {
    "sqlite": "SELECT 1 FROM sqlite_sequence WHERE name = 'responses_api_apikey' AND seq > 0",
    "postgresql": "SELECT 1 FROM responses_api_apikey_id_seq WHERE is_called",
}


def remember_first_key(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    connection = schema_editor.connection
    for statement in SQLITE if connection.vendor == "sqlite" else POSTGRESQL:
        schema_editor.execute(statement, params=None)
    with connection.cursor() as cursor:
        cursor.execute(EVER_NUMBERED[connection.vendor])
        numbered = cursor.fetchone() is not None
        if numbered:
            cursor.execute("INSERT INTO responses_api_firstkey (id, made_at) VALUES (1, CURRENT_TIMESTAMP)")


def forget_trigger(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TRIGGER responses_api_first_key")
    else:
        schema_editor.execute("DROP TRIGGER responses_api_first_key ON responses_api_apikey")
        schema_editor.execute("DROP FUNCTION responses_api_first_key()")


class Migration(migrations.Migration):

    dependencies = [
        ("responses_api", "0011_chore"),
    ]

    operations = [
        migrations.CreateModel(
            name="FirstKey",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ("made_at", models.DateTimeField()),
            ],
        ),
        migrations.RunPython(remember_first_key, forget_trigger),
    ]
