"""``delete_tickets``: rows, and what goes with them, after somebody has seen what that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.admin.utils import NestedObjects
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model

from ...server.context import Context
from ...server.errors import ToolError
from ..options import ModelOptions, has_permission
from ..tool_functions import Arguments
from .admin_log import log_deletions
from .chosen_rows import ChosenRows
from .confirming import ARGUMENTS, CONFIRM, confirm, named

CHANGED = "What would be deleted has changed meanwhile, so nothing was. Call again to see it."


class Deleting:
    """How rows are deleted."""

    def __init__(self, options: ModelOptions, chosen: ChosenRows, *, confirms: bool) -> None:
        self._options = options
        self._chosen = chosen
        self._confirms = confirms

    @property
    def arguments(self) -> Arguments:
        """What ``delete`` takes."""
        return {**self._chosen.arguments, **(ARGUMENTS if self._confirms else {})}

    def delete(self, ctx: Context, given: dict[str, Any]) -> dict[str, Any]:
        """Delete rows with what goes with them: all of them, or none."""
        keys, alias = given["ids"], self._chosen.alias(ctx)
        rows = self._chosen.find(ctx, keys, ["delete"])
        found = _collected(rows, alias)
        self._check(ctx, found)
        if self._confirms:
            confirm(ctx, _question(rows, found), _keys(found), given.get(CONFIRM))
        with transaction.atomic(using=alias):
            rows = self._chosen.lock(ctx, keys, ["delete"])
            if _keys(_collected(rows, alias)) != _keys(found):
                raise ToolError(CHANGED)
            log_deletions(ctx, rows)
            for row in rows:
                self._options.delete_instance(ctx, row)
        return {"deleted": len(rows)}

    def _check(self, ctx: Context, found: Mapping[type[Model], set[Any]]) -> None:
        for model in found:
            own = issubclass(self._options.model, model) or issubclass(model, self._options.model)
            if own or model._meta.auto_created or has_permission(ctx.user, "delete", model):
                continue
            raise PermissionDenied(
                f"This would delete {model._meta.verbose_name_plural}, too, and you may not."
            )


def _collected(rows: Sequence[Any], alias: str) -> Mapping[type[Model], set[Any]]:
    """Return all that would be deleted, by model; raises :class:`ToolError` if it is protected."""
    collector = NestedObjects(using=alias, origin=rows)
    collector.collect(rows)
    if collector.protected:
        counts = _counts(_by_model(collector.protected))
        raise ToolError(f"This cannot be deleted: {counts} would be left without it.")
    found: dict[Any, set[Any]] = dict(collector.model_objs)
    return found


def _by_model(rows: Any) -> dict[type[Model], set[Any]]:
    found: dict[type[Model], set[Any]] = {}
    for row in rows:
        found.setdefault(type(row), set()).add(row)
    return found


def _keys(found: Mapping[type[Model], set[Any]]) -> list[Any]:
    return sorted(
        [model._meta.label, sorted(str(row.pk) for row in rows)] for model, rows in found.items()
    )


def _counts(found: Mapping[type[Model], set[Any]]) -> str:
    counted = sorted(found.items(), key=lambda each: each[0]._meta.label)
    return ", ".join(_counted(model, len(rows)) for model, rows in counted)


def _counted(model: type[Model], number: int) -> str:
    opts = model._meta
    return f"{number} {opts.verbose_name if number == 1 else opts.verbose_name_plural}"


def _question(rows: list[Any], found: Mapping[type[Model], set[Any]]) -> str:
    model = type(rows[0])
    others = {kind: found[kind] for kind in found if kind is not model}
    with_them = f" With that would go {_counts(others)}." if others else ""
    return f"Delete {_counted(model, len(rows))}: {named(rows)}?{with_them}"
