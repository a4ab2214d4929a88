"""What ``mcp.admin(TicketAdmin)`` makes of an admin: tools."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from django.contrib.admin import ModelAdmin
from django.contrib.admin.sites import AdminSite

from ...server.errors import RegistrationError
from ...server.fields.field_types import Schema
from ...server.primitives import Permission, is_permitted
from ..options import ModelOptions
from ..tool_functions import Arguments, tool_function
from .admin_model import AdminModel
from .admin_requests import AdminContext
from .finding_admins import find_admin

Offered = tuple[Callable[..., Any], dict[str, Any]]


def tools_of(
    given: Any,
    server: Any,
    *,
    write: Collection[str],
    actions: Collection[str],
    site: AdminSite | None,
    name: str,
    plural: str,
    confirm: bool | Collection[str],
    allow_secret: Collection[str],
    permission: Permission | None,
) -> Iterator[Offered]:
    """Yield the functions of the tools of an admin, each with its options.

    Raises :class:`RegistrationError`.
    """
    admin = find_admin(given, site)
    model = AdminModel(
        admin,
        server.name,
        write=write,
        actions=actions,
        confirm=confirm,
        allow_secret=allow_secret,
    )
    names = ModelOptions(admin.model)
    singular = name or names.singular_name
    if isinstance(permission, str) and "." not in permission:
        raise RegistrationError(
            f"{model.options.label}: permission= takes a Django permission with its app, such as "
            f'"{admin.opts.app_label}.{permission}", or a function of the user.'
        )
    return _AdminTools(model, singular, plural or names.plural_of(singular), permission).all()


class _AdminTools:
    """The tools of an admin."""

    def __init__(
        self, model: AdminModel, singular: str, plural: str, permission: Permission | None
    ) -> None:
        self._model = model
        self._singular = singular
        self._plural = plural
        self._beside = permission

    def all(self) -> Iterator[Offered]:
        """Yield what can be done by tools."""
        words = self._plural.replace("_", " ")
        model = self._model
        yield self._tool(
            f"find_{self._plural}",
            model.find,
            model.reading.find_arguments,
            f"Find {words}, as the admin lists them. Pass `next` back for more.",
            "view",
            schema=model.reading.find_schema,
            read_only=True,
        )
        yield self._tool(
            f"get_{self._singular}",
            model.get,
            model.reading.get_arguments,
            f"Get one of the {words}, with what belongs to it.",
            "view",
            schema=model.get_schema,
            read_only=True,
        )
        yield from self._writing(words)
        yield from self._acting()

    def _writing(self, words: str) -> Iterator[Offered]:
        model, row = self._model, {"type": "object"}
        if "create" in model.write:
            yield self._tool(
                f"create_{self._singular}",
                model.create,
                model.writing.create_arguments,
                f"Add a new {self._singular.replace('_', ' ')}, as by its form in the admin.",
                "create",
                schema=row,
                destructive=False,
            )
        if "update" in model.write:
            yield self._tool(
                f"update_{self._singular}",
                model.update,
                model.writing.update_arguments,
                f"Change one of the {words}. What is left out stays as it is. Give row_version as "
                "it was read, to change nothing that somebody else has changed.",
                "update",
                schema=row,
                destructive=False,
                idempotent=True,
            )
        if "delete" in model.write:
            yield self._tool(
                f"delete_{self._plural}",
                model.delete,
                model.deleting.arguments,
                f"Delete {words}, with what belongs to them: all, or none.",
                "delete",
                schema={"type": "object", "properties": {"deleted": {"type": "integer"}}},
                destructive=True,
                atomic=False,
            )

    def _acting(self) -> Iterator[Offered]:
        for action in self._model.actions.values():
            function = self._function(
                action.name,
                lambda ctx, given, name=action.name: self._model.act(ctx, name, given),
                action.arguments,
                action.description,
                returns=Any,
            )
            yield (
                function,
                {
                    "permission": self._permission(action.allows, action.name),
                    "strict": True,
                    "read_only": False,
                    "destructive": True,
                    "atomic": False,
                    "once": action.confirms,
                },
            )

    def _tool(
        self,
        name: str,
        run: Callable[[AdminContext, dict[str, Any]], Any],
        arguments: Arguments,
        description: str,
        kind: str,
        *,
        schema: Schema,
        read_only: bool = False,
        **options: Any,
    ) -> Offered:
        function = self._function(name, run, arguments, description, returns=dict[str, Any])
        said = {"strict": True, "read_only": read_only, "output_schema": schema, **options}
        asked = partial(self._model.allows, kind=kind)
        return function, {**said, "permission": self._permission(asked, kind)}

    def _function(
        self,
        name: str,
        run: Callable[..., Any],
        arguments: Arguments,
        description: str,
        *,
        returns: Any,
    ) -> Callable[..., Any]:
        of: type[ModelAdmin[Any]] = type(self._model.options.admin)
        return tool_function(
            name,
            run,
            arguments,
            of=of,
            returns=returns,
            description=description,
            kind=AdminContext,
        )

    def _permission(self, asked: Callable[[Any], bool], kind: str) -> Callable[[Any], bool]:
        beside = self._beside

        def allows(user: Any) -> bool:
            return (beside is None or is_permitted(user, beside)) and asked(user)

        allows.__qualname__ = f"{self._model.options.label}.allows_{kind}"
        return allows
