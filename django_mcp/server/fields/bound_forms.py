"""Forms of the site, filled in with the arguments of a call instead of what a browser sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.forms import BaseForm, Field, FileField, FileInput, Widget

from ..errors import ToolError
from .form_arguments import form_value, take_plain_values

CLEAR: Final = "clear"
"""The argument that names the fields to empty: what is left out, or has nothing, stays as it is."""


def fillable_fields(form_class: type[BaseForm]) -> dict[str, Field]:
    """Return the fields of a form that can be filled in, by name."""
    fields: Mapping[str, Field] = form_class.base_fields  # type: ignore[attr-defined]
    return {
        name: field
        for name, field in fields.items()
        if not (field.disabled or field.widget.is_hidden)
    }


def given_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are given in earnest.

    Some clients fill in all that a model leaves out, with nothing. To empty a field takes a word.
    """
    return {name: value for name, value in arguments.items() if value not in (None, "", [])}


def is_enabled(name: str, field: Field) -> bool:
    """Return whether whoever fills in a form may set one of its fields."""
    return not field.disabled


def valid_form(
    make: Callable[..., BaseForm],
    arguments: Mapping[str, Any],
    may_set: Callable[[str, Field], bool] = is_enabled,
) -> Any:
    """Return the form that ``make`` makes, bound to ``arguments``, by name, and valid.

    ``make`` takes ``data`` and ``files``, or neither, as a form's class does. A field without an
    argument has what the form begins with, such as its instance's value. ``may_set`` says which
    fields may have one. Raises ``ValidationError``, by field.
    """
    values = _values(arguments)
    unbound = make()
    _check_may_be_set(unbound, values, may_set)
    data: dict[str, Any] = {}
    files: dict[str, Any] = {}
    for name, value in values.items():
        field = unbound.fields[name]
        into = files if isinstance(field, FileField) else data
        into[unbound.add_prefix(name)] = form_value(field, value)
    form = make(data=data, files=files)
    take_plain_values(form)
    for name, field in form.fields.items():
        if field.disabled:
            continue
        if name in values:
            # The value is typed already: nothing is to be read as a browser would send it.
            field.widget = FileInput() if isinstance(field, FileField) else Widget()
        elif form.get_initial_for_field(field, name) is not None:
            keep_initial(field)
    if not form.is_valid():
        raise ValidationError(form.errors)
    return form


def keep_initial(field: Field) -> None:
    """Have a field of a bound form keep what the form begins with, to the microsecond."""
    field.disabled = True
    field.widget.supports_microseconds = True


def _values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of fields: what is given, and nothing for what is to be emptied."""
    cleared = arguments.get(CLEAR, ())
    values = {name: value for name, value in arguments.items() if name != CLEAR}
    both = sorted(values.keys() & {*cleared})
    if both:
        raise ToolError(f"{both[0]}: give it a value or clear it, not both.")
    return values | dict.fromkeys(cleared)


def _check_may_be_set(
    form: BaseForm, values: Mapping[str, Any], may_set: Callable[[str, Field], bool]
) -> None:
    for name in values:
        # What the form has taken away for this caller is not ignored.
        if name not in form.fields or not may_set(name, form.fields[name]):
            raise ValidationError({name: "You may not set this."})
