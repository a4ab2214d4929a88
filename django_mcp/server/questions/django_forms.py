"""Django's forms as questions: what their fields ask for, and the answer as ``cleaned_data``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, tzinfo
from functools import partial
from typing import Any, Final

from django import forms
from django.conf import settings
from django.forms.utils import pretty_name
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from .fields import Field, InvalidAnswer, Option, chosen

_KINDS: Final[dict[type[forms.Field], dict[str, Any]]] = {
    forms.MultipleChoiceField: {"kind": "choices"},
    forms.ModelMultipleChoiceField: {"kind": "choices"},
    forms.ChoiceField: {"kind": "choice"},
    forms.BooleanField: {"kind": "boolean"},
    forms.FloatField: {"kind": "number"},
    forms.DecimalField: {"kind": "number"},
    forms.IntegerField: {"kind": "integer"},
    forms.DateTimeField: {"kind": "string", "limits": {"format": "date-time"}},
    forms.DateField: {"kind": "string", "limits": {"format": "date"}},
    forms.EmailField: {"kind": "string", "limits": {"format": "email"}},
    forms.URLField: {"kind": "string", "limits": {"format": "uri"}},
    forms.CharField: {"kind": "string"},
}
"""Kinds of fields, the more particular class first."""

_LIMITS: Final = {
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_value": "minimum",
    "max_value": "maximum",
}


def form_of(value: Any) -> DjangoForm | None:
    """Return a form class, or a partial of one, as a form to be asked; else ``None``."""
    if isinstance(value, forms.BaseForm):
        name = type(value).__name__
        raise TypeError(
            f"A question takes a form's class, since it makes a form of each answer: {name}, or "
            f"functools.partial({name}, ...) with what it takes."
        )
    kind = value.func if isinstance(value, partial) else value
    if isinstance(kind, type) and issubclass(kind, forms.BaseForm):
        return DjangoForm(value)
    return None


class DjangoForm:
    """Implements :class:`django_mcp.server.questions.fields.Form`.

    The answer is ``cleaned_data``, a plain dict like any other answer: nobody is to render the
    form, and what a bound form could do beside is a line of code with its values.
    """

    def __init__(self, factory: Callable[..., forms.BaseForm]) -> None:
        self._factory = factory
        form = factory()
        # Nobody can fill in what is hidden: it keeps the value that it begins with.
        self._hidden = {
            form.add_prefix(name): form.get_initial_for_field(field, name)
            for name, field in form.fields.items()
            if field.widget.is_hidden
        }
        self._prefixed = {name: form.add_prefix(name) for name in form.fields}
        self.fields: Sequence[Field] = tuple(
            _field(form, name, field)
            for name, field in form.fields.items()
            if not (field.widget.is_hidden or field.disabled)
        )

    def read(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the form has made of it; raises :class:`InvalidAnswer`, with its errors."""
        given = {
            self._prefixed[each.name]: _given(each, content[each.name])
            for each in self.fields
            if each.name in content
        }
        form = self._factory(data=self._hidden | given)
        if form.is_valid():
            return form.cleaned_data
        raise InvalidAnswer(list(_problems(form)))


def _field(form: forms.BaseForm, name: str, field: forms.Field) -> Field:
    kind = next((_KINDS[kind] for kind in _KINDS if isinstance(field, kind)), None)
    where = f"{type(form).__name__}.{name}"
    if kind is None:
        raise TypeError(
            f"A question cannot ask for {where}: {type(field).__name__} is no flat value. Use one "
            f"of {', '.join(kind.__name__ for kind in _KINDS)}, or ask on a page of yours with "
            "ctx.elicit_url()."
        )
    if isinstance(field.widget, forms.PasswordInput):
        raise TypeError(
            f"A question cannot ask for {where}: a password must not pass through the client. Ask "
            "for it on a page of yours with ctx.elicit_url()."
        )
    limits = {new: getattr(field, old, None) for old, new in _LIMITS.items()}
    known = {name: _number(limit) for name, limit in limits.items() if limit is not None}
    return Field(
        name=name,
        title=str(pretty_name(name) if field.label is None else field.label) or None,
        description=str(field.help_text) or None,
        required=field.required,
        default=_default(form.get_initial_for_field(field, name), kind["kind"]),
        kind=kind["kind"],
        limits=known | kind.get("limits", {}),
        options=list(_options(field)) if isinstance(field, forms.ChoiceField) else (),
    )


def _options(field: forms.ChoiceField) -> Iterator[Option]:
    choices: Any = field.choices
    for value, label in choices:
        group = label if isinstance(label, (list, tuple)) else [(value, label)]
        for inner, title in group:
            # What a browser shows for no choice at all is none here.
            if str(inner):
                yield Option(str(inner), str(title))


def _default(initial: Any, kind: str) -> Any:
    if initial is None or initial == "":
        return None
    if kind in ("integer", "number"):
        return _number(initial)
    if kind == "boolean":
        return bool(initial)
    if kind == "choices":
        return [str(getattr(each, "pk", each)) for each in initial]
    # Also where the site does without zones: JSON Schema's date-time has an offset.
    if isinstance(initial, datetime) and timezone.is_naive(initial):
        initial = timezone.make_aware(initial, _zone())
    if isinstance(initial, date):
        return initial.isoformat()
    return str(getattr(initial, "pk", initial))


def _zone() -> tzinfo:
    """Return the zone in which the site means moments that name none."""
    return timezone.get_current_timezone() if settings.USE_TZ else timezone.get_default_timezone()


def _number(value: Any) -> float:
    if isinstance(value, int):
        return value
    number = float(value)
    return int(number) if number.is_integer() else number


def _given(each: Field, value: Any) -> Any:
    if each.limits.get("format") == "date" and isinstance(value, str):
        # Clients write dates as ISO 8601 has them, whatever the form takes from people.
        with suppress(ValueError):
            return date.fromisoformat(value)
    if each.limits.get("format") == "date-time" and isinstance(value, str) and not settings.USE_TZ:
        # Clients write an offset, as the format demands. Models of such a site take none.
        with suppress(ValueError):
            moment = parse_datetime(value)
            if moment is not None and timezone.is_aware(moment):
                return timezone.make_naive(moment, _zone())
    return chosen(each, value)


def _problems(form: forms.BaseForm) -> Iterator[str]:
    for name, errors in form.errors.items():
        label = f"{form[name].label}: " if name in form.fields else ""
        yield from (f"{label}{error}" for error in errors)
