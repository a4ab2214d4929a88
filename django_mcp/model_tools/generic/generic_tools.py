"""Five tools for many models: to list and describe models, and to find, get and change rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from ...server.checked_options import check_several
from ...server.errors import ToolError
from ...server.fields.bound_forms import CLEAR
from ...server.fields.field_types import Schema
from ...server.primitives import Permission, is_permitted
from ..admin.admin_requests import AdminContext
from ..changing.confirming import CONFIRM
from ..changing.writing import VERSION
from ..finding.pages import MAX_PAGE
from ..tool_functions import REQUIRED, Arguments, tool_function
from .changing import ACTION, VALUES, change
from .describing import IDS, describe, filter_names
from .offered_models import PERMISSIONS, OfferedModel, OfferedModels, listed

Offered = tuple[Callable[..., Any], dict[str, Any]]
Key = int | str


class GenericTools:
    """Five tools for models, each of which would have several of its own."""

    def __init__(
        self, models: OfferedModels, *, prefix: str = "", permission: Permission | None = None
    ) -> None:
        self._models = models
        self._prefix = prefix
        self._beside = permission

    def all(self, *, scopes: Sequence[str], write_scopes: Sequence[str]) -> Iterator[Offered]:
        """Yield their functions, each with its options as a tool."""
        check_several(write_scopes, "write_scopes", "mcp.admin_site")
        check_several(scopes, "scopes", "mcp.admin_site")
        for name, run, arguments, description in self._reading():
            function = self._function(name, run, arguments, dict[str, Any], description)
            yield (
                function,
                {
                    "permission": self._may_view,
                    "scopes": scopes,
                    "read_only": True,
                    "strict": True,
                    "output_schema": OBJECT,
                },
            )
        kinds = self._kinds()
        if kinds:
            yield (
                self._function("change", self._change, _change_arguments(kinds), Any, CHANGE),
                {
                    "permission": self._may_change,
                    "scopes": [*scopes, *write_scopes],
                    "destructive": True,
                    "strict": True,
                    "atomic": False,  # somebody may be asked first
                    "once": True,
                },
            )

    def _reading(self) -> Iterator[tuple[str, Callable[..., Any], Arguments, str]]:
        yield "list_models", self._list, {"search": (str | None, None)}, LIST
        yield "describe_model", self._describe, MODEL, DESCRIBE
        yield "find", self._find, {**MODEL, **FIND_ARGUMENTS}, FIND
        yield "get", self._get, {**MODEL, "id": (Key, REQUIRED)}, GET

    def _kinds(self) -> list[str]:
        """Return what ``change`` can do with some model or other."""
        kinds = {kind for each in self._models for kind in each.kinds}
        acts = any(each.has_actions for each in self._models)
        return [each for each in PERMISSIONS if each in kinds] + ([ACTION] if acts else [])

    def _function(
        self, name: str, run: Any, arguments: Arguments, returns: Any, description: str
    ) -> Callable[..., Any]:
        return tool_function(
            f"{self._prefix}{name}",
            run,
            arguments,
            of=type(self),
            returns=returns,
            description=description.format(prefix=self._prefix),
            kind=AdminContext,
        )

    def _may_view(self, user: Any) -> bool:
        return self._is_let_in(user) and any(each.allows_view(user) for each in self._models)

    def _may_change(self, user: Any) -> bool:
        return self._is_let_in(user) and any(each.allows_change(user) for each in self._models)

    def _is_let_in(self, user: Any) -> bool:
        return self._beside is None or is_permitted(user, self._beside)

    def _list(self, ctx: AdminContext, given: dict[str, Any]) -> dict[str, Any]:
        words = given.get("search", "").lower().split()
        texts = {each.label: each.title for each in self._models.visible(ctx)}
        found = {
            label: title
            for label, title in texts.items()
            if all(word in f"{label} {title}".lower() for word in words)
        }
        return {"models": found}

    def _describe(self, ctx: AdminContext, given: dict[str, Any]) -> dict[str, Any]:
        return describe(ctx, self._named(ctx, given), self._models)

    def _find(self, ctx: AdminContext, given: dict[str, Any]) -> Any:
        model, filters = self._named(ctx, given), given.get("filters", {})
        allowed = filter_names(model)
        for name in filters:
            if name not in allowed:
                raise ToolError(
                    f"Unknown filter {name[:100]!r}. Of {model.label} there are {listed(allowed)}."
                )
        # Some clients fill in what their model leaves out.
        others = {
            name: value
            for name, value in _without(given, ("model", "filters")).items()
            if value not in ("", False)
        }
        for name in others:
            if name not in model.find.names:
                raise ToolError(f"{name}: {model.label} has none. Leave it out.")
        return model.find.run(ctx, {**filters, **others})

    def _get(self, ctx: AdminContext, given: dict[str, Any]) -> Any:
        model = self._named(ctx, given)
        return model.get.run(ctx, {model.key: str(given["id"])})

    def _change(self, ctx: AdminContext, given: dict[str, Any]) -> Any:
        model = self._named(ctx, given)
        return change(ctx, model, given["do"], _without(given, ("model", "do")))

    def _named(self, ctx: AdminContext, given: Mapping[str, Any]) -> OfferedModel:
        return self._models.named(given["model"], ctx)


def _without(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


def _change_arguments(kinds: Sequence[str]) -> Arguments:
    """Return what ``change`` takes, where it can do these."""
    do: Any = Literal[tuple(kinds)]
    arguments: Arguments = {**MODEL, "do": (do, REQUIRED)}
    if ACTION in kinds:
        arguments[ACTION] = _optional(str, "Its name in describe_model")
    if kinds != ["create"]:
        arguments[IDS] = _optional(list[Key], "Of the rows; one to update, none to create")
    if {"create", "update"} & {*kinds}:
        arguments[VALUES] = _optional(dict[str, Any], "By names in describe_model")
    if "update" in kinds:
        arguments[CLEAR] = _optional(list[str], "Names of values to empty")
        arguments[VERSION] = _optional(str, "From get: nothing is done if the row is another now")
    if {"delete", ACTION} & {*kinds}:
        arguments[CONFIRM] = _optional(str, "The word that an answer asks for")
    return arguments


def _optional(kind: Any, description: str) -> tuple[Any, Any]:
    return Annotated[kind, Field(description=description)] | None, None


OBJECT: Final[Schema] = {"type": "object"}
MODEL: Final[Arguments] = {
    "model": (Annotated[str, Field(description="A name in list_models")], REQUIRED)
}
FIND_ARGUMENTS: Final[Arguments] = {
    "search": _optional(str, "Words, all of which are looked for"),
    "filters": _optional(dict[str, Any], "Values by names in describe_model"),
    "ordering": _optional(str, "One of those in describe_model"),
    "limit": (Annotated[int, Field(ge=1, le=MAX_PAGE)] | None, None),
    "next": _optional(str, "From the page before, with the same arguments"),
    "count": _optional(bool, "Whether to count all that there are"),
}
LIST: Final = (
    "List the models of which you may see rows, by the names that the other tools take, with what "
    "their rows are called. Begin here."
)
DESCRIBE: Final = (
    "Describe a model before you use it: its fields, the filters and orders that {prefix}find "
    "takes for it, and what may be changed."
)
FIND: Final = "Find rows of a model, a page at a time. Pass `next` back for more."
GET: Final = "Get one row of a model, with lists of what belongs to it."
CHANGE: Final = (
    "Create, update or delete rows of a model, or have an action done with them, as far as "
    "{prefix}describe_model says that you may. Values that are left out stay as they are."
)
