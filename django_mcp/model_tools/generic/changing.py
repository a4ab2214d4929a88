"""``change``: one tool that creates, updates, deletes, and has actions done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...server.errors import ToolError
from ...server.fields.bound_forms import CLEAR
from ..admin.admin_requests import AdminContext
from ..changing.confirming import CONFIRM
from ..changing.writing import VERSION
from .describing import IDS, value_names
from .offered_models import PERMISSIONS, OfferedModel, OfferedOperation, listed

ACTION: Final = "action"
VALUES: Final = "values"

TAKEN: Final[Mapping[str, Sequence[str]]] = {
    "create": (VALUES,),
    "update": (IDS, VALUES, CLEAR, VERSION),
    "delete": (IDS, CONFIRM),
    ACTION: (ACTION, IDS, CONFIRM),
}
"""What each takes, beside the model. Anything else is a mistake, and is not ignored."""


def change(ctx: AdminContext, model: OfferedModel, do: str, given: Mapping[str, Any]) -> Any:
    """Do what is asked with rows of a model; raises :class:`ToolError` if that cannot be."""
    # Some clients fill in what their model leaves out.
    given = {name: value for name, value in given.items() if value not in ("", [], {})}
    for name in given:
        if name not in TAKEN[do]:
            raise ToolError(f"{name}: {do} takes {', '.join(TAKEN[do])}, not this.")
    operation = _operation(ctx, model, do, given)
    keys = [str(key) for key in given.get(IDS, ())]
    others: dict[str, Any] = {
        name: given[name] for name in (CLEAR, VERSION, CONFIRM) if name in given
    }
    values = given.get(VALUES, {})
    if do in ("create", "update"):
        _check_values(model, operation, values)
    if do == "update":
        if len(keys) != 1:
            raise ToolError(f"{IDS}: update takes the id of one row, not {len(keys)}.")
        return operation.run(ctx, {**values, **others, model.key: keys[0]})
    if do == "create":
        return operation.run(ctx, values)
    return operation.run(ctx, {**others, IDS: keys})


def _operation(
    ctx: AdminContext, model: OfferedModel, do: str, given: Mapping[str, Any]
) -> OfferedOperation:
    """Return what is to be done, if the caller may."""
    actions = model.actions(ctx)
    if do == ACTION:
        name = given.get(ACTION, "")
        if name not in actions:
            said = f"Unknown action {name[:100]!r}" if name else "Say which action"
            raise ToolError(f"{said}. Of {model.label} there are {listed([*actions])}.")
        return actions[name]
    found = model.operation(do, ctx)
    if found is None:
        may = [each for each in PERMISSIONS if model.operation(each, ctx)]
        may += [ACTION] if actions else []
        instead = f"What you may is {listed(may)}." if may else "You may only read them."
        raise ToolError(f"You may not {do} rows of {model.label}. {instead}")
    return found


def _check_values(
    model: OfferedModel, operation: OfferedOperation, values: Mapping[str, Any]
) -> None:
    names = value_names(model, operation)
    unknown = [name for name in values if name not in names]
    if unknown:
        raise ToolError(
            f"{VALUES}: {unknown[0][:100]!r} is unknown. To {operation.kind} rows of {model.label} "
            f"takes {listed(names)}."
        )
