"""``delete`` of an admin: what its page says would go along, confirmed here, and as it deletes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.db import transaction

from ...server.errors import ToolError
from ..changing.admin_log import log_deletions
from ..changing.chosen_rows import ChosenRows
from ..changing.confirming import ARGUMENTS, CONFIRM, confirm, named
from ..changing.deleting import CHANGED
from ..tool_functions import Arguments
from .admin_actions import DELETE_SELECTED
from .admin_options import AdminOptions, asked
from .admin_requests import AdminContext, as_text, on_page


class AdminDeleting:
    """How rows of an admin are deleted."""

    def __init__(self, options: AdminOptions, chosen: ChosenRows, *, confirms: bool) -> None:
        self._options = options
        self._admin = options.admin
        self._chosen = chosen
        self._confirms = confirms

    @property
    def arguments(self) -> Arguments:
        """What ``delete`` takes."""
        return {**self._chosen.arguments, **(ARGUMENTS if self._confirms else {})}

    def delete(self, ctx: AdminContext, given: dict[str, Any]) -> dict[str, Any]:
        """Delete rows with what goes with them: all of them, or none."""
        keys = given["ids"]
        request = on_page(asked(ctx), self._admin, "changelist", posted={"post": "yes"})
        rows = self._chosen.find(ctx, keys, ["delete"])
        question, about = self._question(request, rows)
        if self._confirms:
            confirm(ctx, question, about, given.get(CONFIRM))
        with transaction.atomic(using=self._chosen.alias(ctx)):
            rows = self._chosen.lock(ctx, keys, ["delete"])
            if self._question(request, rows)[1] != about:
                raise ToolError(CHANGED)
            self._log(ctx, request, rows)
            self._delete(ctx, request, rows)
        return {"deleted": len(rows)}

    def _question(self, request: Any, rows: Sequence[Any]) -> tuple[str, Any]:
        """Return what is asked, and all that is to be deleted, by the admin's account."""
        tree, counts, lacking, protected = self._admin.get_deleted_objects(rows, request)
        if protected:
            without = ", ".join(map(as_text, protected))
            raise ToolError(f"This cannot be deleted: {without} would be left without it.")
        if lacking:
            raise PermissionDenied(
                f"This would delete {', '.join(sorted(map(str, lacking)))}, and you may not."
            )
        opts = self._admin.opts
        name = opts.verbose_name if len(rows) == 1 else opts.verbose_name_plural
        others = ", ".join(
            f"{what} ({number})"
            for what, number in sorted(dict(counts).items())
            if what not in (opts.verbose_name_plural, opts.verbose_name)
        )
        with_them = f" With that would go: {others}." if others else ""
        return f"Delete {len(rows)} {name}: {named(list(rows))}?{with_them}", _texts(tree)

    def _log(self, ctx: AdminContext, request: Any, rows: Sequence[Any]) -> None:
        if type(self._admin).log_deletions is ModelAdmin.log_deletions:
            log_deletions(ctx, rows)
        else:
            self._admin.log_deletions(request, self._chosen.queryset(ctx, rows))

    def _delete(self, ctx: AdminContext, request: Any, rows: Sequence[Any]) -> None:
        # One as on the page of a row, several as by the action, if the admin has that.
        if len(rows) > 1 and DELETE_SELECTED in self._admin.get_actions(request):
            self._admin.delete_queryset(request, self._chosen.queryset(ctx, rows))
            return
        for row in rows:
            self._admin.delete_model(request, row)


def _texts(tree: Any) -> Any:
    if isinstance(tree, (list, tuple)):
        return [_texts(each) for each in tree]
    return str(tree)
