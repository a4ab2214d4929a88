"""Rows: those that tools read, and sessions with queues that nobody uses but that are there.

Runs in a process with Django set up. The many rows are copies of one that the ORM has written, made
by the database itself, so that a million of each kind take seconds and a new column takes no care.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.db import connection, models
from django.utils import timezone

from .legs import ROWS

EXPRESSIONS = {
    "postgresql": (
        "md5(n::text)::uuid",
        "lpad(to_hex(n), 32, '0')::uuid",
        "md5(n::text) || md5((n + 1)::text)",
    ),
    "sqlite": (
        "lower(hex(randomblob(16)))",
        "printf('%032x', n)",
        "lower(hex(randomblob(32)))",
    ),
}
"""For each database: a UUID without any order, as sessions have, one with, and a digest."""


def fill(sessions: int) -> None:
    """Put in the table of the tools, and so many sessions, each with a stream and a message."""
    from shelf.models import Item  # noqa: PLC0415 - after setup()

    Item.objects.bulk_create(Item(id=key, value=key * 1_000_003) for key in range(ROWS, 2 * ROWS))
    if sessions:
        _fill(sessions)
    with connection.cursor() as cursor:
        names = ", ".join(connection.introspection.table_names())
        cursor.execute(f"ANALYZE TABLE {names}" if connection.vendor == "mysql" else "ANALYZE")


def _fill(number: int) -> None:
    from django_mcp.models import OutgoingMessage, PendingRequest, Session, Stream  # noqa: PLC0415

    now = timezone.now()
    session = Session.objects.create(
        key_digest=secrets.token_hex(32),
        server="bench",
        revision="2025-11-25",
        client_name="bench",
        state="ready",
        expires=now + timedelta(days=20),
    )
    stream = Stream.objects.create(session=session, next_seq=2)
    message = OutgoingMessage.objects.create(
        stream=stream, seq=1, kind="notification", body='{"jsonrpc": "2.0"}'
    )
    request = PendingRequest.objects.create(
        session=session,
        stream=stream,
        server="bench",
        request_id="1",
        method="tools/call",
        state="answered",
        ended=now,
    )
    uuid, ordered, digest = EXPRESSIONS[connection.vendor]
    _copy(session, number - 1, id=uuid, key_digest=digest)
    _copy_for(Session, session, stream, id=ordered, session_id="parent.id")
    _copy_for(Stream, stream, message, stream_id="parent.id")
    _copy_for(
        Stream,
        stream,
        request,
        id=ordered,
        session_id="parent.session_id",
        stream_id="parent.id",
    )


def _copy(row: models.Model, number: int, **changed: str) -> None:
    """Insert copies of a row, with other values in some columns."""
    numbers = (
        "WITH RECURSIVE numbers(n) AS "
        f"(SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {number}) "
    )
    if number > 0:
        _insert(row, "CROSS JOIN numbers", numbers, changed)


def _copy_for(
    parent: type[models.Model], parents_row: models.Model, row: models.Model, **changed: str
) -> None:
    """Insert a copy of a row for each row of the parent but the first, which has one."""
    parents = (
        f"WITH parent AS (SELECT *, row_number() OVER () AS n FROM {parent._meta.db_table} "
        f"WHERE id <> {_literal(parents_row)}) "
    )
    _insert(row, "CROSS JOIN parent", parents, changed)


def _insert(row: models.Model, join: str, common: str, changed: dict[str, str]) -> None:
    table, own = row._meta.db_table, row._meta.pk.attname
    columns = [
        field.attname
        for field in row._meta.concrete_fields
        if field.attname != own or own in changed
    ]
    quote = connection.ops.quote_name
    values = [changed.get(each, f"original.{quote(each)}") for each in columns]
    statement = (
        f"{common}INSERT INTO {table} ({', '.join(map(quote, columns))}) "
        f"SELECT {', '.join(values)} FROM {table} original {join} "
        f"WHERE original.{quote(own)} = {_literal(row)}"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _literal(row: models.Model) -> str:
    if isinstance(row.pk, int):
        return str(row.pk)
    return f"'{row.pk}'" if connection.vendor == "postgresql" else f"'{row.pk.hex}'"
