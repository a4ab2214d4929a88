"""The actions of an admin, with rows that a call names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import model_format_dict
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http.response import HttpResponseBase, HttpResponseRedirectBase

from ...server.context import Context
from ...server.errors import RegistrationError, ToolError
from ...server.functions import documentation_of
from ..changing.admin_log import log_action
from ..changing.chosen_rows import ChosenRows
from ..changing.confirming import ARGUMENTS, CONFIRM, confirm, named
from ..tool_functions import Arguments
from .admin_options import AdminOptions, asked
from .admin_requests import AdminContext, described, describing_request, on_page, request_of
from .admin_writing import DENIED

DELETE_SELECTED: Final = "delete_selected"
"""The action with which Django deletes rows, after a page of its own."""
HTML: Final = "text/html"
NEEDS_PAGE: Final = (
    "{action} needs a confirmation, or more to go by, on a page that only a browser shows. Nothing "
    "has been done. Do it in the admin."
)


class AdminAction:
    """An action of an admin, by its name."""

    def __init__(
        self, options: AdminOptions, chosen: ChosenRows, name: str, *, confirms: bool
    ) -> None:
        self._options = options
        self._chosen = chosen
        self.name = name
        self.confirms = confirms
        request = describing_request()
        known = described(lambda: options.admin.get_actions(request), None)
        if known is not None and name not in known:
            raise RegistrationError(
                f"{options.label}: it has no action {name!r}. It has {', '.join(known) or 'none'}."
            )
        self._known = None if known is None else known[name]

    @property
    def description(self) -> str:
        """What it does."""
        words = f"{self.name.replace('_', ' ').capitalize()}."
        if self._known is None:
            return words
        function, said = _function_of(self._known), _described_by(self._known)
        own = documentation_of(function)
        return own or str(said % model_format_dict(self._options.model)) or words

    @property
    def arguments(self) -> Arguments:
        """What it takes."""
        return {**self._chosen.arguments, **(ARGUMENTS if self.confirms else {})}

    def allows(self, user: Any) -> bool:
        """Return whether a user may do this with some rows."""
        request = request_of(user)
        return self._options.permits(request, "view") and self.name in self._having(request)

    def run(self, ctx: AdminContext, given: dict[str, Any]) -> Any:
        """Do it with all of the rows, or none; return what it says."""
        keys, word = given["ids"], given.get(CONFIRM)
        posted = {"action": self.name, ACTION_CHECKBOX_NAME: keys}
        request = on_page(asked(ctx), self._options.admin, "changelist", posted=posted)
        having = self._having(request)
        if self.name not in having or not self._options.permits(request, "view"):
            raise PermissionDenied(DENIED)
        function = _function_of(having[self.name])
        if self.confirms:
            rows = self._allowed(ctx, function, self._chosen.find(ctx, keys, ["view"]))
            title = self.description.rstrip(".")
            confirm(ctx, f"{title}? {named(rows)}", [self.name, keys], word)
        with transaction.atomic(using=self._chosen.alias(ctx)):
            rows = self._allowed(ctx, function, self._chosen.lock(ctx, keys, ["view"]))
            queryset = self._chosen.queryset(ctx, rows)
            answer = function(self._options.admin, request, queryset)
            said = self._said(ctx, answer, len(rows))
            log_action(ctx, rows, self.name)
        return said

    def _having(self, request: Any) -> Mapping[str, Any]:
        return dict(self._options.admin.get_actions(request))

    def _allowed(self, ctx: Context, function: Any, rows: list[Any]) -> list[Any]:
        """Return the rows, if the caller may do this with each: by one of the permissions."""
        wanted: Sequence[str] = getattr(function, "allowed_permissions", ())
        for row in rows:
            if wanted and not any(self._options.may(ctx, each, row) for each in wanted):
                raise PermissionDenied(f"You may not do this with {row}.")
        return rows

    def _said(self, ctx: AdminContext, answer: Any, number: int) -> Any:
        """Return what an action has to say; raises :class:`ToolError` if it asks, by a page."""
        told = "\n".join(ctx.messages)
        if not isinstance(answer, HttpResponseBase):
            return told or f"Done with {number}."
        if isinstance(answer, HttpResponseRedirectBase):
            is_here = answer.url.split("?")[0] in (ctx.admin_request.path, "", ".")
            leads = "" if is_here else f"It goes on at {answer.url}, in a browser."
            return "\n".join(filter(None, (told, leads))) or f"Done with {number}."
        if answer.get("Content-Type", "").startswith(HTML):
            raise ToolError(NEEDS_PAGE.format(action=self.description.rstrip(".")))
        return answer


def _function_of(action: Any) -> Any:
    # A tuple until Django 6.0, then an object that has its parts by name.
    return action.func if hasattr(action, "func") else action[0]


def _described_by(action: Any) -> Any:
    return str(action.plural_description if hasattr(action, "func") else action[2])
