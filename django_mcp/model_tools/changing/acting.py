"""The actions of a model's tools: functions of a context and a queryset, as of ``ModelAdmin``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction

from ...server.context import Context
from ...server.errors import RegistrationError
from ...server.functions import documentation_of, hints_of, is_async, name_of, parameters_of
from ..options import ModelOptions
from ..tool_functions import REQUIRED, Arguments
from .admin_log import log_action
from .chosen_rows import ChosenRows
from .confirming import ARGUMENTS, CONFIRM, confirm, named


class Action:
    """A function that does something with rows, which a call names."""

    def __init__(self, options: ModelOptions, chosen: ChosenRows, given: Any) -> None:
        self._options = options
        self._chosen = chosen
        self._function: Callable[..., Any] = (
            getattr(options, given) if isinstance(given, str) else given
        )
        self.name = name_of(self._function)
        self.confirms = is_confirmed(options, self.name)
        self.permissions: Sequence[str] = getattr(self._function, "allowed_permissions", None) or (
            "change",
        )
        for each in self.permissions:
            if not hasattr(options, f"has_{each}_permission"):
                raise RegistrationError(
                    f"{options.label}: the action {self.name!r} wants the permission {each!r}, and "
                    f"there is no method has_{each}_permission(self, user, obj=None)."
                )
        self.arguments = self._arguments()

    @property
    def description(self) -> str:
        """What it does."""
        said = getattr(self._function, "short_description", "")
        words = self.name.replace("_", " ").capitalize()
        return documentation_of(self._function) or str(said) or f"{words}."

    def allows(self, user: Any) -> bool:
        """Return whether a user may do this with some rows."""
        return all(self._options.allows(each, user) for each in self.permissions)

    def run(self, ctx: Context, given: dict[str, Any]) -> tuple[Any, list[Any]]:
        """Do it with all of the rows, or none; return what comes of it, and the rows."""
        keys, word = given.pop("ids"), given.pop(CONFIRM, None)
        if self.confirms:
            rows = self._chosen.find(ctx, keys, self.permissions)
            title = self.name.replace("_", " ").capitalize()
            confirm(ctx, f"{title}? {named(rows)}", [self.name, keys, given], word)
        with transaction.atomic(using=self._chosen.alias(ctx)):
            rows = self._chosen.lock(ctx, keys, self.permissions)
            value = self._function(ctx, self._chosen.queryset(ctx, rows), **given)
            log_action(ctx, rows, self.name)
        return value, rows

    def _arguments(self) -> Arguments:
        function, label = self._function, self._options.label
        if is_async(function):
            raise RegistrationError(
                f"{label}: the action {self.name!r} is asynchronous, and runs in a transaction, "
                "which no asynchronous function does. Write a plain one."
            )
        parameters, hints = parameters_of(function), hints_of(function)
        names = [each.name for each in parameters]
        if len(names) < 2:
            raise RegistrationError(
                f"{label}: an action takes a context and a queryset: `def {self.name}(ctx, "
                "queryset):`."
            )
        own = {*self._chosen.arguments, *ARGUMENTS}
        for name in names[2:]:
            if name not in hints or name in own:
                why = "is an argument of the tool already" if name in own else "has no annotation"
                raise RegistrationError(f"{label}: {name!r} of {self.name!r} {why}.")
        others = {
            each.name: (hints[each.name], REQUIRED)
            if each.default is REQUIRED
            else (hints[each.name] | None, None)
            for each in parameters[2:]
        }
        return {**self._chosen.arguments, **others, **(ARGUMENTS if self.confirms else {})}


def is_confirmed(options: ModelOptions, name: str) -> bool:
    """Return whether something is confirmed before it is done."""
    wanted = options.confirm
    return wanted if isinstance(wanted, bool) else name in wanted
