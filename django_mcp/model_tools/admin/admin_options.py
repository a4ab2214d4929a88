"""What an admin says, as the options of tools: rows, permissions and how rows are written."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Collection
from functools import cached_property
from inspect import signature
from typing import Any, Final

from django.contrib.admin import ModelAdmin
from django.contrib.admin.options import BaseModelAdmin
from django.contrib.admin.utils import flatten_fieldsets

from ...server.context import Context
from ...server.errors import RegistrationError
from ...server.fields.field_types import type_of
from ..options import ModelOptions, check_model
from .admin_requests import request_of
from .shown_fields import ShownFields

logger = logging.getLogger("django_mcp.server")

_OF_ROWS: Final = (
    "has_view_permission",
    "has_change_permission",
    "has_view_or_change_permission",
)


class AdminOptions(ModelOptions):
    """The options of tools of a model, as a ``ModelAdmin`` has them."""

    def __init__(self, admin: ModelAdmin[Any], allowed: Collection[str] = ()) -> None:
        label = type(admin).__name__
        super().__init__(check_model(admin.model, label))
        self.label = label
        self.admin = admin
        self.allowed = allowed
        self.shown = ShownFields(self.model, admin, allowed)
        self._check_key()

    @property
    def hides_rows(self) -> bool:
        """Whether some of the rows of ``get_queryset()`` may be hidden from a caller."""
        return any(
            getattr(type(self.admin), name) is not getattr(BaseModelAdmin, name)
            for name in _OF_ROWS
        )

    def get_queryset(self, ctx: Context) -> Any:
        """Return the admin's rows for the caller."""
        return self.admin.get_queryset(asked(ctx))

    def may(self, ctx: Context, permission: str, obj: Any = None) -> bool:
        """Return whether the site lets the caller in, and the admin has the permission for him."""
        return self.permits(asked(ctx), permission, obj)

    def allows(self, permission: str, user: Any, obj: Any = None) -> bool:
        """Return the same for a user of whom no more is known.

        A site that wants to know more of him hides its tools.
        """
        try:
            return self.permits(request_of(user), permission, obj)
        except Exception:
            logger.warning(
                "%s: whether %s may %s cannot be asked without a whole request, so its tools are "
                "hidden",
                self.label,
                user,
                permission,
                exc_info=True,
            )
            return False

    def permits(self, request: Any, permission: str, obj: Any = None) -> bool:
        """Return the same for a request."""
        admin = self.admin
        if not admin.admin_site.has_permission(request):
            return False
        if permission == "add":
            return bool(admin.has_add_permission(request))
        if permission == "view":
            return bool(admin.has_view_or_change_permission(request, obj))
        ask: Callable[..., Any] = getattr(admin, f"has_{permission}_permission")
        # Permissions of the site's own are often methods of a request alone, as those of actions.
        return bool(ask(request) if obj is None else _ask_with_row(ask, request, obj))

    @cached_property
    def described_admin(self) -> Any:
        """The admin as it is for who may do all, for schemas: of a row that is there no more."""
        admin: Any = copy.copy(self.admin)
        for name in ("view", "change", "add", "delete", "view_or_change"):
            setattr(admin, f"has_{name}_permission", _always)
        return admin

    def _check_key(self) -> None:
        pk: Any = self.model._meta.pk
        while pk.is_relation:
            pk = pk.target_field
        kind = type_of(pk)
        if kind is None or kind.value is None or self.shown.is_secret(self.shown.key):
            raise RegistrationError(
                f"{self.label}: rows of {self.model.__name__} are named by {self.shown.key!r}, "
                "which looks as if it were a secret, or cannot be an argument. Offer another "
                f'model, or say allow_secret=["{self.shown.key}"].'
            )


def names_on_page(admin: Any, request: Any, row: Any) -> list[Any]:
    """Return the names that an admin's page of a row has, in order; of a new one without a row."""
    return list(flatten_fieldsets(admin.get_fieldsets(request, row)))


def form_on_page(admin: Any, request: Any, row: Any) -> Any:
    """Return the class of the form that an admin's page has, for a row, or a new one."""
    fields = names_on_page(admin, request, row)
    return admin.get_form(request, row, change=row is not None, fields=fields)


def asked(ctx: Context) -> Any:
    """Return the request of a call for its admin."""
    return ctx.admin_request  # type: ignore[attr-defined]


def _always(*args: Any, **kwargs: Any) -> bool:
    return True


def _ask_with_row(ask: Callable[..., Any], request: Any, obj: Any) -> Any:
    return ask(request, obj) if len(signature(ask).parameters) > 1 else ask(request)
