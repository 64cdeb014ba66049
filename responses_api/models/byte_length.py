"""The size of a text in bytes, calculated by the database."""

from typing import Any

from django.db.models import Func, IntegerField


class ByteLength(Func):
    """``OCTET_LENGTH``; SQLite has none before 3.43."""

    function = "OCTET_LENGTH"
    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, template="LENGTH(CAST(%(expressions)s AS BLOB))", **extra)
