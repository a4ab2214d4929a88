"""In which database rows are read that belong to another one: where they are written, if it was.

A router may send whatever is read to a replica, which may be behind: what has just been written
would be shown as it was before, and be written back where a form keeps what it begins with. A
row that was read in the database that is written has therefore its related rows from there, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import router
from django.db.models import Prefetch, QuerySet, prefetch_related_objects
from django.db.models.constants import LOOKUP_SEP
from django.db.models.fields.related_descriptors import (
    ForwardManyToOneDescriptor,
    ManyToManyDescriptor,
    ReverseManyToOneDescriptor,
    ReverseOneToOneDescriptor,
)
from django.db.models.fields.reverse_related import ManyToOneRel


def where_written(rows: Any, row: Any, *lists: str) -> Any:
    """Return ``rows``, a queryset of what belongs to ``row``, to be read where they are written.

    So is all that they prefetch, and ``lists``, relations of theirs. They stay as they are if
    ``row`` was read elsewhere, if there are no routers, if they name a database themselves, or if
    they are there already.
    """
    is_queryset = isinstance(rows, QuerySet)  # packages have others, of rows that are not saved
    if not is_queryset or rows._result_cache is not None:
        return rows
    alias = _database_of(rows.model, row)
    if alias is None:
        return rows
    rows = rows if rows._db is not None else rows.using(alias)
    lookups = (*rows._prefetch_related_lookups, *lists)
    if rows._db != alias or not lookups:
        return rows
    return rows.prefetch_related(None).prefetch_related(*_lookups(rows.model, lookups, row))


def load(rows: Sequence[Any], lookups: Sequence[Any]) -> None:
    """Prefetch something for rows of one model, where it is written if they were read there."""
    if rows and lookups:
        prefetch_related_objects(rows, *_lookups(type(rows[0]), lookups, rows[0]))


def fetched(rows: Any) -> list[Any]:
    """Return the rows of a queryset, with what it prefetches as :func:`load` does."""
    rows, lookups = parted(rows)
    found = list(rows)
    load(found, lookups)
    return found


def first(rows: Any) -> Any:
    """Return the first row of a queryset, or nothing, with what it prefetches likewise."""
    return next(iter(fetched(rows[:1])), None)


def parted(rows: Any) -> tuple[Any, Sequence[Any]]:
    """Return a queryset without what it prefetches, and that, which is left to :func:`load`."""
    if not router.routers:
        return rows, ()
    return rows.prefetch_related(None), rows._prefetch_related_lookups


def is_routed() -> bool:
    """Return whether the site has routers, which may read elsewhere than they write."""
    return bool(router.routers)


def _database_of(model: Any, row: Any) -> str | None:
    """Return where to read rows of a model that belong to a row; ``None``: where the router says.

    The router is not asked where it would read: it may say something else the next time.
    """
    if not router.routers:
        return None
    try:
        # A new row has no database yet; it comes where rows are written.
        if row._state.db not in (None, router.db_for_write(type(row), instance=row)):
            return None
        return router.db_for_write(model, instance=row)
    except Exception:  # a router may raise for models that are only read
        return None


def _lookups(model: Any, lookups: Sequence[Any], row: Any) -> Sequence[Any]:
    """Return lookups of ``prefetch_related()``, each with the queryset for all that it leads to."""
    if _database_of(model, row) is None:
        return lookups
    known: dict[str, Any] = {}
    return [each for lookup in lookups for each in _levels(model, lookup, row, known)]


def _levels(model: Any, lookup: Any, row: Any, known: dict[str, Any]) -> Iterator[Any]:
    """Yield a lookup, after those for each row on the way, but for what is ``known`` already."""
    wanted = lookup if isinstance(lookup, Prefetch) else Prefetch(lookup)
    parts = wanted.prefetch_through.split(LOOKUP_SEP)
    for level, part in enumerate(parts):
        to = wanted.get_current_prefetch_to(level)
        is_last = level == len(parts) - 1
        if to in known:
            model = known[to]
            if is_last and wanted.queryset is not None:
                yield lookup  # Django says what is wrong with it
            continue
        rows = _behind(model, part)
        if rows is None:
            # Something of the site's own, or a generic relation, which has no one model.
            yield lookup
            return
        if is_last and wanted.queryset is not None:
            rows = wanted.queryset
        model = known[to] = rows.model
        path, to_attr = LOOKUP_SEP.join(parts[: level + 1]), wanted.to_attr if is_last else None
        yield Prefetch(path, queryset=where_written(rows, row), to_attr=to_attr)


def _behind(model: Any, name: str) -> Any:
    """Return the rows that an attribute of a model's rows leads to, as Django would begin."""
    found = getattr(model, name, None)
    if isinstance(found, ForwardManyToOneDescriptor):
        return found.field.remote_field.model._base_manager.all()
    if isinstance(found, ReverseOneToOneDescriptor):
        return found.related.related_model._base_manager.all()
    if isinstance(found, ManyToManyDescriptor):
        related = found.rel.related_model if found.reverse else found.rel.model
        return related._default_manager.all()
    if isinstance(found, ReverseManyToOneDescriptor) and isinstance(found.rel, ManyToOneRel):
        return found.rel.related_model._default_manager.all()
    return None
