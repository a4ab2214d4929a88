"""Processes of the version before go on while and after the tables are migrated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import IntegrityError, connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

from django_mcp.models import Session, Subscription
from django_mcp.protocol.errors import Unavailable
from tests.store.visiting import Visit, resource

APPS = ("django_mcp", "django_mcp_tokens")
RETIRING: frozenset[str] = frozenset()
"""Migrations that remove what the version before did not use any more, as ``app.name``."""
ADDITIVE = (
    migrations.CreateModel,
    migrations.AddIndex,
    migrations.RemoveIndex,
    migrations.RenameIndex,
    migrations.AlterModelOptions,
    migrations.AlterModelManagers,
    migrations.RunPython,
    migrations.RunSQL,
)
"""What a process that does not know of it cannot notice, however old it is."""


def is_tolerated(operation: Operation) -> bool:
    """Return whether a process of the version before can go on reading and writing."""
    if isinstance(operation, migrations.AddField):
        field = operation.field
        return bool(field.null or field.has_db_default() or field.many_to_many)
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        return all(map(is_tolerated, operation.database_operations))
    return isinstance(operation, ADDITIVE)


def later_operations() -> Iterator[tuple[str, Operation]]:
    """Yield every operation of the migrations after an app's first."""
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        if app in APPS and not migration.initial and f"{app}.{name}" not in RETIRING:
            for operation in migration.operations:
                yield f"{app}.{name}", operation


def test_both_apps_have_migrations():
    assert {app for app, _ in MigrationLoader(None).disk_migrations} >= set(APPS)


def test_every_migration_after_the_first_is_additive():
    refused = [(name, each) for name, each in later_operations() if not is_tolerated(each)]
    assert not refused, (
        "Processes of the version before would fail. Give a new column a db_default, or let it be "
        "null; remove a column in the version after the one that ceases to use it (RETIRING)."
    )


@pytest.mark.parametrize(
    ("operation", "tolerated"),
    [
        (migrations.AddField("session", "new", models.CharField(default="")), False),
        (migrations.AddField("session", "new", models.CharField(db_default="")), True),
        (migrations.AddField("session", "new", models.IntegerField(null=True)), True),
        (migrations.RemoveField("session", "server"), False),
        (migrations.RenameField("session", "server", "name"), False),
        (migrations.AlterField("session", "ended", models.DateTimeField()), False),
        (migrations.AddIndex("session", models.Index(fields=["server"], name="new")), True),
        (migrations.DeleteModel("session"), False),
    ],
)
def test_what_is_tolerated(operation, tolerated):
    assert is_tolerated(operation) is tolerated


# With a real table, by a process that does not know of the column.


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "column",
    [models.CharField(max_length=9, db_default="new"), models.CharField(max_length=9, null=True)],
    ids=["db_default", "null"],
)
@pytest.mark.parametrize("model", [Session, Subscription])
def test_rows_are_written_without_knowing_the_column(model, column):
    with added(model, column):
        Visit().subscribe(resource(1))
        assert model.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_default_of_python_alone_is_not_enough():
    column = models.CharField(max_length=9, default="new")
    with added(Session, column), pytest.raises((IntegrityError, Unavailable)):
        Visit()


@contextmanager
def added(model: type[models.Model], column: models.Field) -> Iterator[None]:
    """Add a column to a table for as long as a block lasts, and say nothing to the model."""
    column.set_attributes_from_name("new_column")
    column.model = model
    with connection.schema_editor() as editor:
        editor.add_field(model, column)
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            editor.remove_field(model, column)
