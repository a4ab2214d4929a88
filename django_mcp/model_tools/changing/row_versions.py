"""Versions of rows: a digest of what somebody has read, by which an update notices that it is old.

Not of a column: a digest also knows what ``QuerySet.update()`` has changed, which sets no time.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connections
from django.db.models import F, Model, QuerySet

from ...server.paging import keys
from ..fields.databases import where_written
from ..fields.row_fields import RowFields

DIGEST_CHARACTERS: Final = 20


class RowVersions:
    """The versions of a model's rows, by all that is shown of them and all that a form changes."""

    def __init__(self, fields: RowFields, changed: Sequence[str]) -> None:
        self.model = fields.model
        shown = {each.model_field.name for each in fields if each.is_own}
        opts, names = self.model._meta, {*shown, *changed}
        self._columns = [each for each in opts.concrete_fields if each.name in names]
        self._lists = [each for each in opts.many_to_many if each.name in names]

    def of(self, row: Any) -> str:
        """Return the version of a row as it is now."""
        values = [
            None if each.value_from_object(row) is None else each.value_to_string(row)
            for each in self._columns
        ]
        lists = [
            sorted(map(str, rows.values_list("pk", flat=True))) for rows in self._rows_of_lists(row)
        ]
        told = json.dumps([str(row.pk), values, lists], cls=DjangoJSONEncoder)
        return digest_of(told, self.model)

    def _rows_of_lists(self, row: Any) -> Iterator[Any]:
        for each in self._lists:
            yield where_written(getattr(row, each.name).order_by(), row)


def digest_of(told: str, model: type[Model]) -> str:
    """Return the version that stands for all that is told of a row of a model."""
    label = model._meta.label
    digest = hmac.digest(keys(f"model_tools.version\0{label}")[0], told.encode(), "sha256")
    return digest.hex()[:DIGEST_CHARACTERS]


def lock(rows: QuerySet[Any]) -> list[Any]:
    """Lock rows until the present transaction ends, and return them as they are then.

    It is to be the first statement of its transaction: one that reads the past would go on reading
    it. ``rows`` have no joins.
    """
    connection = connections[rows.db]
    rows = rows.order_by("pk")
    if connection.features.has_select_for_update:
        no_key = connection.features.has_select_for_no_key_update
        return list(rows.select_for_update(no_key=no_key))
    # One writer at a time: who has written has the lock, and reads what is there.
    column = _any_column(rows.model)
    if column is not None:
        rows.order_by().update(**{column: F(column)})
    return list(rows)


def _any_column(model: type[Model]) -> str | None:
    """Return a column of the model's own table that can be written again as it is."""
    found = (
        each.name
        for each in model._meta.local_concrete_fields
        if not each.primary_key and not getattr(each, "generated", False)
    )
    return next(found, None)
