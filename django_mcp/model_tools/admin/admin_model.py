"""``AdminModel``: all that can be done with the rows of one ``ModelAdmin``, by functions of a call.

It knows nothing of tools. Each method takes an :class:`AdminContext` and a dictionary of values,
which are as the arguments of the same name say, and checks the caller's permissions itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied

from ...server.checked_options import check_several
from ...server.errors import RegistrationError
from ...server.fields.field_types import Schema
from ..changing.chosen_rows import ChosenRows
from ..tool_functions import Arguments
from .admin_actions import DELETE_SELECTED, AdminAction
from .admin_deleting import AdminDeleting
from .admin_options import AdminOptions
from .admin_reading import AdminReading
from .admin_requests import AdminContext
from .admin_writing import DENIED, AdminWriting

KINDS: Final = ("create", "update", "delete")
"""What ``write`` may have."""


class AdminModel:
    """The rows of an admin, for the calls of a server.

    ``write`` has some of :data:`KINDS`, ``actions`` names of the admin's actions. ``confirm`` is
    whether deletions and actions are confirmed first, or which. ``allow_secret`` names fields that
    look secret and are not. Raises :class:`RegistrationError`.
    """

    def __init__(
        self,
        admin: ModelAdmin[Any],
        server_name: str,
        *,
        write: Collection[str] = (),
        actions: Collection[str] = (),
        confirm: bool | Collection[str] = True,
        allow_secret: Collection[str] = (),
    ) -> None:
        check_several(confirm, "confirm", type(admin).__name__)
        check_several(allow_secret, "allow_secret", type(admin).__name__)
        self.options = AdminOptions(admin, allow_secret)
        self.write = _checked_write(write, actions, self.options.label)
        self.reading = AdminReading(self.options, server_name)
        chosen = ChosenRows(self.options, self.reading)
        self.writing = AdminWriting(self.options, self.reading, chosen, self.write)

        def confirms(name: str) -> bool:
            return confirm if isinstance(confirm, bool) else name in confirm

        self.deleting = AdminDeleting(self.options, chosen, confirms=confirms("delete"))
        self.actions = {
            name: AdminAction(self.options, chosen, name, confirms=confirms(name))
            for name in actions
            if name != DELETE_SELECTED
        }

    @property
    def get_schema(self) -> Schema:
        """What :meth:`get` returns."""
        schema = self.reading.get_schema
        return self.writing.with_version(schema) if "update" in self.write else schema

    @property
    def arguments(self) -> Mapping[str, Arguments]:
        """What each of the methods takes, by its name, of those that can be used."""
        found = {"find": self.reading.find_arguments, "get": self.reading.get_arguments}
        if "create" in self.write:
            found["create"] = self.writing.create_arguments
        if "update" in self.write:
            found["update"] = self.writing.update_arguments
        if "delete" in self.write:
            found["delete"] = self.deleting.arguments
        return found

    def allows(self, user: Any, kind: str) -> bool:
        """Return whether a user may do something with some rows: one of :data:`KINDS`, or view."""
        name = {"create": "add", "update": "change"}.get(kind, kind)
        return self.options.allows(name, user)

    def find(self, ctx: AdminContext, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a page of rows."""
        self._check(ctx, "view")
        return self.reading.find(ctx, dict(given))

    def get(self, ctx: AdminContext, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return one row, with its version if it may be updated by it."""
        self._check(ctx, "view")
        return (self.writing if "update" in self.write else self.reading).get(ctx, given)

    def create(self, ctx: AdminContext, given: Mapping[str, Any]) -> dict[str, Any]:
        """Add a row, and return it."""
        self._check_kind("create")
        self._check(ctx, "add")
        return self.writing.create(ctx, given)

    def update(self, ctx: AdminContext, given: Mapping[str, Any]) -> dict[str, Any]:
        """Change a row, and return it."""
        self._check_kind("update")
        self._check(ctx, "change")
        return self.writing.update(ctx, dict(given))

    def delete(self, ctx: AdminContext, given: Mapping[str, Any]) -> dict[str, Any]:
        """Delete rows, once that is confirmed. Not to be called in a transaction."""
        self._check_kind("delete")
        self._check(ctx, "delete")
        return self.deleting.delete(ctx, dict(given))

    def act(self, ctx: AdminContext, name: str, given: Mapping[str, Any]) -> Any:
        """Apply an action to rows, once that is confirmed. Not to be called in a transaction."""
        self._check(ctx, "view")
        return self.actions[name].run(ctx, dict(given))

    def _check_kind(self, kind: str) -> None:
        if kind not in self.write:
            raise PermissionDenied(DENIED)

    def _check(self, ctx: AdminContext, permission: str) -> None:
        if not self.options.may(ctx, permission):
            raise PermissionDenied(DENIED)


def _checked_write(write: Collection[str], actions: Collection[str], label: str) -> frozenset[str]:
    names = [write] if isinstance(write, str) else list(write)
    for name in names:
        if name not in KINDS:
            raise RegistrationError(
                f"{label}: write has {name!r}. It takes some of {', '.join(KINDS)}."
            )
    if isinstance(actions, str):
        raise RegistrationError(f"{label}: actions takes names, as in actions=[{actions!r}].")
    return frozenset([*names, *(["delete"] if DELETE_SELECTED in actions else [])])
