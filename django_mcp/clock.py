"""The database's clock, by which every age is measured: hosts disagree, it does not."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Func, IntegerField
from django.db.models.functions import Now
from django.db.models.sql.compiler import SQLCompiler


class DatabaseNow(Now):
    """``Now()``, in the time zone in which Django stores datetimes.

    Django leaves the time zone of a MySQL or MariaDB session as the server has it, so that there
    ``Now()`` is hours away from every stored value unless the server happens to run in UTC. On
    SQLite it is UTC always, also when ``USE_TZ`` is off and stored values are local time. Both are
    told apart from PostgreSQL, which converts by itself. The offset comes from the time zone
    database of the host, not from its clock (but for the hour in which summer time changes).
    """

    def as_mysql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        """Shift the UTC clock, whatever the zone of the server."""
        template = f"(UTC_TIMESTAMP(6) + INTERVAL {offset(connection)} SECOND)"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> Any:
        """Shift the UTC clock, which is the only one that there is."""
        # Doubled twice: once for the template, once for the query's own parameters.
        form = "%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f"
        moment = f"STRFTIME('{form}', 'NOW', '{offset(connection):+d} seconds')"
        # SQLite compares moments as texts, and Python writes six digits of a fraction, or none.
        template = f"REPLACE({moment} || '000', '.000000', '')"
        return self.as_sql(compiler, connection, template=template, **extra)


class DatabaseHour(Func):
    """The number of whole hours since 1970 began, in UTC: the same whatever zones are set."""

    output_field = IntegerField()
    template = "CAST(FLOOR(EXTRACT(EPOCH FROM STATEMENT_TIMESTAMP()) / 3600) AS INTEGER)"

    def as_mysql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        """Count from a moment without a zone to another one, both in UTC."""
        template = "TIMESTAMPDIFF(HOUR, '1970-01-01', UTC_TIMESTAMP())"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> Any:
        """Divide whole seconds."""
        # Doubled twice, as above.
        template = "(CAST(STRFTIME('%%%%s', 'NOW') AS INTEGER) / 3600)"
        return self.as_sql(compiler, connection, template=template, **extra)


def offset(connection: BaseDatabaseWrapper) -> int:
    """Return by how many seconds the zone of stored values is ahead of UTC, at present."""
    if connection.timezone_name == "UTC":
        return 0
    zone = zoneinfo.ZoneInfo(connection.timezone_name)
    offset = dt.datetime.now(zone).utcoffset() or dt.timedelta()
    return int(offset.total_seconds())
