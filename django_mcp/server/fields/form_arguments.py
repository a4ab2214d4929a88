"""Fields of Django's forms as arguments of a tool, and their values as a form takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from django import forms
from pydantic import AfterValidator, Field, WithJsonSchema

from ..errors import RegistrationError
from .field_types import (
    DURATION,
    FINITE,
    HOUR,
    MAX_CHOICES,
    decimal_of,
    json_value,
    moment,
    text,
    type_of,
)

MAX_CHOSEN: Final = 1_000
"""Of several that may be chosen."""

_AS_STRING: Final = WithJsonSchema({"type": "string"})
_TEXT: Final = Annotated[str, AfterValidator(text), _AS_STRING]

# The more particular class first.
_KINDS: Final[dict[type[forms.Field], Any]] = {
    forms.JSONField: Annotated[Any, AfterValidator(json_value)],
    forms.NullBooleanField: bool,
    forms.BooleanField: bool,
    forms.FloatField: FINITE,
    forms.DecimalField: decimal_of(None),
    forms.IntegerField: int,
    forms.SplitDateTimeField: Annotated[datetime, AfterValidator(moment)],
    forms.DateTimeField: Annotated[datetime, AfterValidator(moment)],
    forms.DateField: date,
    forms.TimeField: HOUR,
    forms.DurationField: DURATION,
    forms.UUIDField: Annotated[UUID, _AS_STRING],
    forms.CharField: _TEXT,
}


def argument_of(field: forms.Field, where: str) -> Any:
    """Return the annotation of an argument for a form's field.

    Raises :class:`RegistrationError` for files, and fields of several inputs. ``where`` names it.
    """
    if isinstance(field, (forms.FileField, forms.MultiValueField)) and not _is_moment(field):
        raise RegistrationError(
            f"{where} is a {type(field).__name__}, which is no single value of JSON. Leave it out "
            "of the form, or give the tool a form of its own without it."
        )
    if isinstance(field.widget, forms.PasswordInput):
        raise RegistrationError(
            f"{where} is a password, which must not pass through a model. Leave it out of the form."
        )
    annotation = _kind_of(field)
    description = str(field.help_text or "")
    return Annotated[annotation, Field(description=description)] if description else annotation


def form_value(field: forms.Field, value: Any) -> Any:
    """Return the value of an argument as the form's field takes it."""
    return json.dumps(value, cls=field.encoder) if isinstance(field, forms.JSONField) else value


def take_plain_values(form: forms.BaseForm) -> None:
    """Have the fields of a form that take a date and a time take a moment instead."""
    for name, field in form.fields.items():
        if _is_moment(field) and not field.disabled:
            form.fields[name] = forms.DateTimeField(
                required=field.required,
                label=field.label,
                initial=field.initial,
                error_messages=field.error_messages,
            )


def _is_moment(field: forms.Field) -> bool:
    return isinstance(field, forms.SplitDateTimeField)


def _kind_of(field: forms.Field) -> Any:
    if isinstance(field, forms.ModelMultipleChoiceField):
        return _several(_key_of(field))
    if isinstance(field, forms.ModelChoiceField):
        return _key_of(field)
    if isinstance(field, (forms.MultipleChoiceField, forms.TypedMultipleChoiceField)):
        return _several(_choice_of(field))
    if isinstance(field, forms.ChoiceField):
        return _choice_of(field)
    return next((kind for form, kind in _KINDS.items() if isinstance(field, form)), _TEXT)


def _several(kind: Any) -> Any:
    return Annotated[list[kind], Field(max_length=MAX_CHOSEN)]


def _key_of(field: Any) -> Any:
    """Return what the rows of a choice are named by."""
    opts = field.queryset.model._meta
    key = opts.pk if field.to_field_name in (None, "pk") else opts.get_field(field.to_field_name)
    while key.is_relation:
        key = key.target_field
    kind = type_of(key)
    return _TEXT if kind is None or kind.value is None else kind.value


def _choice_of(field: Any) -> Any:
    """Return the choices of a field, as long as a model should read them each time."""
    if callable(getattr(field, "_choices", None)):
        return _TEXT  # they are others each time
    named = {_value(field, value): str(label) for value, label in _flat(field.choices)}
    named.pop("", None)
    named.pop(None, None)
    if not named or len(named) > MAX_CHOICES:
        return _TEXT
    telling = all(str(value).lower() == label.lower() for value, label in named.items())
    labels = ", ".join(f"{value}: {label}" for value, label in named.items())
    literal: Any = Literal[tuple(named)]
    return literal if telling else Annotated[literal, Field(description=labels)]


def _value(field: Any, value: Any) -> Any:
    value = getattr(value, "value", value)
    if value in ("", None) or isinstance(value, int):
        return value
    coerced = getattr(field, "coerce", str)(value)
    return coerced if isinstance(coerced, (str, int)) else str(value)


def _flat(choices: Any) -> Any:
    for value, label in choices:
        if isinstance(label, (list, tuple)):
            yield from label
        elif isinstance(label, Mapping):
            yield from label.items()
        else:
            yield value, label
