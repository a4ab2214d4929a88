"""Forms as the input of tools: what ``mcp.form`` offers.

The fields become arguments, and what a client sends becomes a bound form that is valid. What is
wrong is told field by field, before any code of the handler runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

from asgiref.sync import sync_to_async
from django.db import router, transaction
from django.forms import BaseForm, BaseModelForm

from .errors import RegistrationError
from .fields.bound_forms import CLEAR, given_values, valid_form
from .fields.form_schema import form_parameters
from .filled_parameters import Provide
from .functions import check, hints_of, is_async, label_of, name_of, parameters_of
from .questions.kinds import UNSET
from .result_types import take_place_of

Handler = Callable[..., Any]

_INSTANCE: Final = "instance_"
_KWARGS: Final = "form_kwargs_"


@dataclass(frozen=True, slots=True)
class FormTool:
    """A form that is the input of a tool."""

    form_class: type[BaseForm]
    name: str
    """The tool's."""
    fields: Sequence[str]
    """The fields that are arguments, of the same names."""
    clears: bool
    """Whether there is an argument ``clear``, which names the fields to empty."""


def form_tool(
    form_class: Any,
    handler: Handler,
    *,
    name: str,
    instance: Callable[..., Any] | None,
    form_kwargs: Callable[..., Any] | Mapping[str, Any] | None,
    max_file_bytes: int,
) -> tuple[FormTool, Handler]:
    """Return a form as a tool's input, and the function that is the tool.

    Raises :class:`RegistrationError` for what is no form, a field of which JSON has no value, and a
    handler that does not take the form.
    """
    check_form(form_class)
    if is_save(form_class, handler):
        handler = _saving(form_class, name)
    check(handler)
    label = label_of(handler)
    taken, others = _parameters(handler, form_class)
    fields = form_parameters(
        form_class,
        f"{label}: {form_class.__name__}",
        keeps=instance is not None,
        max_file_bytes=max_file_bytes,
    )
    names = [each.name for each in fields]
    if twice := {each.name for each in others} & {*names}:
        raise RegistrationError(
            f"{label}: {min(twice)!r} is a parameter, and a field of {form_class.__name__}. Rename "
            "one of them."
        )
    hidden = _hidden(instance, form_kwargs)
    function = _function(handler, partial(_make, form_class), taken, names)
    take_place_of(function, handler, [*others, *fields, *hidden])
    # The form's own, for a base says nothing of it.
    function.__doc__ = function.__doc__ or form_class.__dict__.get("__doc__")
    offered = [each for each in names if each != CLEAR]
    return FormTool(form_class, name or name_of(handler), offered, CLEAR in names), function


def check_form(form_class: Any) -> None:
    """Refuse what is no class of a form."""
    if not (inspect.isclass(form_class) and issubclass(form_class, BaseForm)):
        raise RegistrationError(
            f"{form_class!r} is no form. mcp.form takes the class of a Django form: "
            "`@mcp.form(RefundForm)`."
        )


def is_save(form_class: Any, handler: Any) -> bool:
    """Return whether a handler is the method by which a ``ModelForm`` saves."""
    return issubclass(form_class, BaseModelForm) and handler is form_class.save


def _saving(form_class: type[BaseModelForm[Any]], name: str) -> Handler:
    """Return the handler that saves a form, and says what has been saved."""
    if not name:
        raise RegistrationError(
            f"mcp.form({form_class.__name__}, {form_class.__name__}.save) needs name=, which "
            f'clients call the tool by, such as "create_{form_class._meta.model._meta.model_name}".'
        )

    def save(form: Any) -> dict[str, Any]:
        with transaction.atomic(using=router.db_for_write(form._meta.model)):
            saved = form.save()
        return {"id": saved.pk, "text": str(saved)}

    save.__name__, save.__qualname__ = name, f"{form_class.__qualname__}.save"
    save.__module__ = form_class.__module__
    return save


def _parameters(
    handler: Handler, form_class: type[BaseForm]
) -> tuple[str, list[inspect.Parameter]]:
    """Return the name of the parameter that takes the form, the first, and the others."""
    parameters, hints = parameters_of(handler), hints_of(handler)
    first = parameters[0] if parameters else None
    kind = hints.get(first.name, form_class) if first else None
    is_form = kind is Any or (inspect.isclass(kind) and issubclass(form_class, kind))
    if first is None or not is_form:
        raise RegistrationError(
            f"{label_of(handler)}: the first parameter takes the form: "
            f"`def {name_of(handler)}(form: {form_class.__name__})`."
        )
    return first.name, parameters[1:]


def _hidden(
    instance: Callable[..., Any] | None,
    form_kwargs: Callable[..., Any] | Mapping[str, Any] | None,
) -> list[inspect.Parameter]:
    """Return the parameters that the server fills in for the form."""
    given = form_kwargs
    kwargs = (lambda: given) if isinstance(given, Mapping) else given
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[Any, Provide(source)]
        )
        for name, source in ((_INSTANCE, instance), (_KWARGS, kwargs))
        if source is not None
    ]


def _make(form_class: type[BaseForm], values: dict[str, Any], names: Sequence[str]) -> Any:
    """Return the valid form; takes what is for it out of ``values``, and leaves the rest."""
    sent = {name: values.pop(name) for name in names}
    given = given_values({name: value for name, value in sent.items() if value is not UNSET})
    kwargs = dict(values.pop(_KWARGS, None) or {})
    if _INSTANCE in values:
        kwargs["instance"] = values.pop(_INSTANCE)
    return valid_form(partial(form_class, **kwargs), given)


def _function(
    handler: Handler, make: Callable[..., Any], taken: str, names: Sequence[str]
) -> Handler:
    def filled(**values: Any) -> Any:
        form = make(values, names)
        return handler(**{taken: form}, **values)

    async def afilled(**values: Any) -> Any:
        form = await sync_to_async(make)(values, names)
        return await handler(**{taken: form}, **values)

    return afilled if is_async(handler) else filled
