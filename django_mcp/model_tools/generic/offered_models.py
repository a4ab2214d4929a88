"""The models that generic tools are about, and which of them a caller may know of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from ...server.arguments import ArgumentError
from ...server.errors import ToolError
from ...server.fields.field_types import Schema
from ...server.input_schema import input_schema_of
from ...server.signature import Signature
from ..admin.admin_model import AdminModel
from ..admin.admin_requests import AdminContext
from ..tool_functions import CONTEXT, Arguments, tool_function

logger = logging.getLogger("django_mcp.server")

MAX_NAMED: Final = 30
"""Models that an error names; ``list_models`` has them all."""
PERMISSIONS: Final = {"create": "add", "update": "change", "delete": "delete"}


class OfferedOperation:
    """Something that can be done with the rows of a model, and what it takes."""

    def __init__(
        self,
        kind: str,
        run: Callable[..., Any],
        arguments: Arguments,
        description: str = "",
    ) -> None:
        self.kind = kind
        self.description = description
        self._run = run
        self._arguments = arguments

    @cached_property
    def signature(self) -> Signature:
        """What it takes: worked out when it is first asked for, since there are many."""
        function = tool_function(
            self.kind,
            self._run,
            self._arguments,
            of=type(self),
            returns=Any,
            description="",
            kind=AdminContext,
        )
        return Signature(function)

    @cached_property
    def schema(self) -> Schema:
        """What it takes, as a tool of its own would show it."""
        return input_schema_of(None, self.signature)[0]

    @property
    def names(self) -> Sequence[str]:
        """The names of all that it takes."""
        return self.signature.names

    def run(self, ctx: AdminContext, arguments: Mapping[str, Any]) -> Any:
        """Do it; raises :class:`ToolError` for arguments that do not fit."""
        try:
            values = self.signature.bind(arguments, strict=True)
        except ArgumentError as error:
            raise ToolError(str(error)) from None
        return self.signature.function(**values, **{CONTEXT: ctx})


class OfferedModel:
    """A model, with what can be done with its rows."""

    def __init__(self, admin: AdminModel) -> None:
        self.admin = admin
        self.model = admin.options.model
        self.label: str = self.model._meta.label
        self._operations = {
            kind: OfferedOperation(kind, getattr(admin, kind), arguments)
            for kind, arguments in admin.arguments.items()
        }
        self._actions = {
            name: OfferedOperation(name, _acting(admin, name), each.arguments, each.description)
            for name, each in admin.actions.items()
        }
        self.find = self._operations["find"]
        self.get = self._operations["get"]

    @property
    def title(self) -> str:
        """What its rows are called."""
        return str(self.model._meta.verbose_name_plural)

    @property
    def key(self) -> str:
        """The name, among its fields, of what names a row."""
        return self.admin.reading.lookup

    @cached_property
    def lists(self) -> Sequence[str]:
        """The lists of rows of inlines, that those see who may see all."""
        properties = self.admin.get_schema["properties"]
        return [name for name, each in properties.items() if "properties" in each.get("items", {})]

    @property
    def kinds(self) -> list[str]:
        """What some callers or other may do with its rows, beside reading."""
        return [kind for kind in PERMISSIONS if kind in self._operations]

    @property
    def has_actions(self) -> bool:
        """Whether there are actions."""
        return bool(self._actions)

    def is_visible(self, ctx: AdminContext) -> bool:
        """Return whether the caller may see rows of it."""
        return self.admin.options.may(ctx, "view")

    def operation(self, kind: str, ctx: AdminContext) -> OfferedOperation | None:
        """Return how rows are created, updated or deleted, if the caller may."""
        found = self._operations.get(kind)
        may = found is not None and self.admin.options.may(ctx, PERMISSIONS[kind])
        return found if may else None

    def actions(self, ctx: AdminContext) -> dict[str, OfferedOperation]:
        """Return the actions that the caller may have done with some rows, by name."""
        if not self._actions:
            return {}
        admin: Any = self.admin.options.admin
        having = admin.get_actions(ctx.admin_request)
        return {name: each for name, each in self._actions.items() if name in having}

    def allows_view(self, user: Any) -> bool:
        """Return whether a user, of whom no more is known, may see rows of it."""
        return self.admin.allows(user, "view")

    def allows_change(self, user: Any) -> bool:
        """Return whether a user may see rows of it, and change something."""
        return self.allows_view(user) and (
            any(self.admin.allows(user, kind) for kind in self.kinds) or self._allows_acting(user)
        )

    def _allows_acting(self, user: Any) -> bool:
        try:
            return any(each.allows(user) for each in self.admin.actions.values())
        except Exception:
            logger.warning(
                "%s: whether %s may have actions done cannot be asked without a whole request, so "
                "they do not count",
                self.label,
                user,
                exc_info=True,
            )
            return False


class OfferedModels:
    """All of them, by name."""

    def __init__(self, admins: Iterable[AdminModel]) -> None:
        offered = sorted(map(OfferedModel, admins), key=lambda each: each.label)
        self._models = {each.label.lower(): each for each in offered}

    def __iter__(self) -> Iterator[OfferedModel]:
        return iter(self._models.values())

    def visible(self, ctx: AdminContext) -> Sequence[OfferedModel]:
        """Return those whose rows the caller may see, in the order of their names."""
        return [each for each in self if each.is_visible(ctx)]

    def named(self, name: str, ctx: AdminContext) -> OfferedModel:
        """Return the model of a name, if the caller may see rows of it; :class:`ToolError` else.

        What is hidden and what does not exist cannot be told apart.
        """
        found = self._models.get(name.strip().lower())
        if found is not None and found.is_visible(ctx):
            return found
        labels = [each.label for each in self.visible(ctx)]
        raise ToolError(f"Unknown model {name[:100]!r}. There are {listed(labels)}.")


def listed(names: Sequence[str]) -> str:
    """Return names as an error has them, as many as are of use."""
    more = f", and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return (", ".join(names[:MAX_NAMED]) or "none") + more


def _acting(admin: AdminModel, name: str) -> Callable[[AdminContext, dict[str, Any]], Any]:
    def act(ctx: AdminContext, given: dict[str, Any]) -> Any:
        return admin.act(ctx, name, given)

    return act
