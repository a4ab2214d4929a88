"""``ModelTools``: what ``@mcp.model(Ticket)`` decorates, and how tools come from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import cleandoc
from typing import Any, Final, Self

from django.core.checks import CheckMessage
from django.db.models import Model

from ..server.checked_options import check_several
from ..server.context import Context
from ..server.fields.field_types import Schema
from ..server.registry import MCPServer
from .changing.acting import Action, is_confirmed
from .changing.chosen_rows import ChosenRows
from .changing.writing import Writing, checked_form
from .finding.reading import Reading
from .model_checks import check_orders
from .model_resources import RowResources
from .options import ModelOptions, check_model
from .tool_functions import Arguments, tool_function

SEVERAL: Final = (
    "list_fields",
    "search_fields",
    "ordering_fields",
    "ordering",
    "allow_secret",
    "actions",
    "confirm",
    "scopes",
    "write_scopes",
)
"""The options that take several names."""

Run = Callable[[Context, dict[str, Any]], Any]


class ModelTools(ModelOptions):
    """Tools of a model. Derive from it, say what may be seen, and register it.

    ::

        @mcp.model(Ticket)
        class TicketTools(ModelTools):
            fields = ["id", "subject", "status", "customer"]
            search_fields = ["subject"]
            filters = {"status": ["in"]}

            def get_queryset(self, ctx):
                return super().get_queryset(ctx).filter(team__members=ctx.user)

    The attributes are its options, and the methods that begin with ``get_``, ``has_``, ``save_``
    and ``delete_`` are to be overridden, as those of a ``ModelAdmin``.
    """

    def __init__(self, model: type[Model], server: MCPServer) -> None:
        super().__init__(model)
        for name in SEVERAL:
            check_several(getattr(self, name), name, self.label)
        self._server = server
        self._reading = Reading(self, server)
        self._chosen = ChosenRows(self, self._reading)
        self._writing = Writing(
            self,
            self._reading,
            self._chosen,
            create=checked_form(self.create, self, "create"),
            update=checked_form(self.update, self, "update"),
        )
        self._resources = RowResources(self, self._reading, server)
        self.tool_names: list[str] = []
        """The tools that were made."""

    @classmethod
    def offer(cls, model: Any, server: MCPServer) -> Self:
        """Register the tools of a model with a server: what ``server.model(model)`` does."""
        toolset = cls(check_model(model, cls.__name__), server)
        toolset._offer_reading()
        toolset._offer_writing()
        toolset._offer_deleting()
        for each in toolset.actions:
            toolset._offer_action(Action(toolset, toolset._chosen, each))
        if toolset.resources:
            toolset._resources.offer()
        return toolset

    def check(self) -> Iterable[CheckMessage]:
        """Yield what a system check finds."""
        return check_orders(self)

    def _offer_reading(self) -> None:
        reading, plural = self._reading, self.plural_name
        schema, get = reading.get_schema, reading.get
        if self.update is not None:
            schema, get = self._writing.with_version(schema), self._writing.get
        self._offer(
            "find",
            f"find_{plural}",
            reading.find,
            reading.find_arguments,
            f"Find {_words(plural)}. {self._about()} Pass `next` back for more.".replace("  ", " "),
            schema=reading.find_schema,
            allows=self.permission("view"),
            read_only=True,
        )
        self._offer(
            "get",
            f"get_{self.singular_name}",
            get,
            reading.get_arguments,
            f"Get one of the {_words(plural)}.",
            schema=schema,
            allows=self.permission("view"),
            read_only=True,
        )

    def _offer_writing(self) -> None:
        writing, singular, plural = self._writing, self.singular_name, self.plural_name
        if self.create is not None:
            self._offer(
                "create",
                f"create_{singular}",
                writing.create,
                writing.create_arguments,
                f"Add a new {_words(singular)}.",
                schema={"type": "object"},
                allows=self.permission("add"),
                destructive=False,
            )
        if self.update is not None:
            self._offer(
                "update",
                f"update_{singular}",
                writing.update,
                writing.update_arguments,
                f"Change one of the {_words(plural)}. What is left out stays as it is. Give "
                "row_version as it was read, to change nothing that somebody else has changed.",
                schema={"type": "object"},
                allows=self.permission("change"),
                destructive=False,
                idempotent=True,
            )
        if self.update is not None and self.bulk_update:
            self._offer(
                "bulk_update",
                f"update_{plural}",
                writing.update_several,
                writing.bulk_arguments,
                f"Change several {_words(plural)} alike: all of them, or none.",
                schema={"type": "object", "properties": {"changed": {"type": "integer"}}},
                allows=self.permission("change"),
                destructive=False,
                idempotent=True,
            )

    def _offer_deleting(self) -> None:
        if not self.delete:
            return
        # It needs the admin's look at what goes with a row.
        from .changing.deleting import Deleting  # noqa: PLC0415

        deleting = Deleting(self, self._chosen, confirms=is_confirmed(self, "delete"))
        self._offer(
            "delete",
            f"delete_{self.plural_name}",
            deleting.delete,
            deleting.arguments,
            f"Delete {_words(self.plural_name)}, with what belongs to them: all, or none.",
            schema={"type": "object", "properties": {"deleted": {"type": "integer"}}},
            allows=self.permission("delete"),
            destructive=True,
            atomic=False,
        )

    def _offer_action(self, action: Action) -> None:
        def run(ctx: Context, given: dict[str, Any]) -> Any:
            value, rows = action.run(ctx, given)
            if self.resources:
                self._resources.announce(rows)
            return f"Done with {len(rows)}." if value is None else value

        self._offer(
            action.name,
            action.name,
            run,
            action.arguments,
            action.description,
            allows=action.allows,
            destructive=True,
            atomic=False,
            once=action.confirms,
        )

    def _offer(
        self,
        kind: str,
        name: str,
        run: Run,
        arguments: Arguments,
        description: str,
        *,
        allows: Callable[[Any], bool],
        schema: Schema | None = None,
        read_only: bool = False,
        **options: Any,
    ) -> None:
        """Register a tool; ``kind`` is what ``tool_options`` calls it."""
        function = tool_function(
            name,
            run,
            arguments,
            of=type(self),
            returns=Any if schema is None else dict[str, Any],
            description=description,
        )
        said: dict[str, Any] = {
            "permission": allows,
            "scopes": [*self.scopes, *(() if read_only else self.write_scopes)],
            "read_only": read_only,
            "strict": True,
            "output_schema": schema,
            **options,
            **self.tool_options.get(kind, {}),
        }
        self._server.tool(**said)(function)
        self.tool_names.append(said.get("name") or name)

    def _about(self) -> str:
        return cleandoc(vars(type(self)).get("__doc__") or "")


def _words(name: str) -> str:
    return name.replace("_", " ")
