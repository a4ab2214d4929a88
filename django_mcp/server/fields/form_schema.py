"""What clients are told of a form's fields: the parameters of a function that takes their values.

A field's own rules are told and not enforced here: the form says of all fields together what is
wrong with them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from keyword import iskeyword
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from django import forms
from django.core import validators
from django.core.files.uploadedfile import UploadedFile
from django.forms.utils import pretty_name
from pydantic import Field, TypeAdapter, WithJsonSchema

from ..errors import RegistrationError
from ..json_schema import PlainJsonSchema, inlined
from ..questions.kinds import UNSET
from ..uploads import Upload
from .bound_forms import CLEAR, fillable_fields
from .field_types import Schema
from .form_arguments import argument_of

_LIMITS: Final[Mapping[type, tuple[str, str]]] = {
    validators.MinLengthValidator: ("minLength", ""),
    validators.MaxLengthValidator: ("maxLength", ""),
    validators.MinValueValidator: ("minimum", "At least {}."),
    validators.MaxValueValidator: ("maximum", "At most {}."),
}
"""The keyword of a validator's limit, and how it is told where the keyword means nothing."""

_FORMATS: Final = {forms.EmailField: "email", forms.URLField: "uri"}

_PATTERN: Final = re.compile(
    r"(?P<begin>\^|\\A)?"
    r"(?P<body>([^\\^$(){}\[\]]|\\[ds.+*?/]|\[[^\\^\[\]]+\]|\{\d+(,\d*)?\})*)"
    r"(?P<end>\$|\\Z)?"
)
"""Regular expressions that mean the same in JavaScript, which clients have."""


def form_parameters(
    form_class: type[forms.BaseForm],
    label: str,
    *,
    keeps: bool,
    max_file_bytes: int,
) -> list[inspect.Parameter]:
    """Return a parameter for each field that can be filled in.

    With ``keeps`` the form is about what is there already, so that no field has to be sent. Fields
    that are not sent have the value ``UNSET``. Raises :class:`RegistrationError`, with ``label``,
    for a field that JSON has no value for.
    """
    fields = fillable_fields(form_class)
    parameters = [
        _parameter(
            name,
            field,
            f"{label}: its field {name!r}",
            rules=[*field.validators, *_rules_of_model(form_class, name)],
            keeps=keeps,
            max_file_bytes=max_file_bytes,
        )
        for name, field in fields.items()
    ]
    clearable = [name for name, field in fields.items() if _can_be_cleared(field, keeps)]
    if clearable:
        if CLEAR in fields:
            raise RegistrationError(
                f"{label}: a field is called {CLEAR!r}, which is the argument that names fields to "
                "empty. Give it another name."
            )
        choice: Any = Literal[tuple(clearable)]
        described = Annotated[list[choice], Field(description="What to empty")]
        parameters.append(_optional(CLEAR, described, _schema_of(described)))
    return parameters


def _can_be_cleared(field: forms.Field, keeps: bool) -> bool:
    """Return whether a field may end up empty, although it would not begin so."""
    return not field.required and (keeps or field.initial not in (None, "", False))


def _parameter(
    name: str,
    field: forms.Field,
    where: str,
    *,
    rules: Iterable[Any],
    keeps: bool,
    max_file_bytes: int,
) -> inspect.Parameter:
    if not name.isidentifier() or iskeyword(name):
        raise RegistrationError(f"{where} has a name that no argument can have.")
    if isinstance(field, forms.FileField):
        kind: Any = Annotated[UploadedFile, Upload(max_bytes=max_file_bytes)]
    else:
        kind = argument_of(field, where)
    schema = _described(name, field, rules, _schema_of(kind))
    if field.required and field.initial is None and not keeps:
        # In place of what pydantic would say of the help text alone.
        said = Field(description=schema.get("description"))
        annotation = Annotated[kind, said, WithJsonSchema(schema)]
        return _named(name, annotation, inspect.Parameter.empty)
    begins_with = _json_of(field.initial)
    return _optional(name, kind, schema | ({} if begins_with is None else {"default": begins_with}))


def _optional(name: str, kind: Any, schema: Schema) -> inspect.Parameter:
    annotation = Annotated[kind | None, WithJsonSchema(schema)]
    return _named(name, annotation, Field(default_factory=lambda: UNSET))


def _named(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _schema_of(kind: Any) -> Schema:
    return inlined(TypeAdapter(kind).json_schema(schema_generator=PlainJsonSchema))


def _rules_of_model(form_class: Any, name: str) -> Sequence[Any]:
    """Return the validators that the site has given to a field of a form's model."""
    if not issubclass(form_class, forms.BaseModelForm) or form_class._meta.model is None:
        return ()
    found = {each.name: each for each in form_class._meta.model._meta.fields}.get(name)
    return () if found is None else found._validators


def _described(name: str, field: forms.Field, rules: Iterable[Any], schema: Schema) -> Schema:
    """Return the schema of a field's values with what the field says of itself."""
    schema = dict(schema)
    texts = [_label(name, field), str(field.help_text or ""), schema.pop("description", "")]
    for keyword, value, text in _limits(rules):
        if _means_something(keyword, schema):
            schema.setdefault(keyword, value)
        elif text:
            texts.append(text.format(value))
    for kind, name_of_format in _FORMATS.items():
        if isinstance(field, kind):
            schema["format"] = name_of_format
    # A help text is of the field alone, and choices are told behind it.
    described = " ".join(_sentence(text) for text in dict.fromkeys(texts) if text)
    return schema | ({"description": described} if described else {})


def _label(name: str, field: forms.Field) -> str:
    """Return what the page calls a field, where its name does not say as much."""
    label = "" if field.label is None else str(field.label)
    return "" if label.lower() == pretty_name(name).lower() else label


def _sentence(text: str) -> str:
    return text if text[-1:] in ".!?:" else f"{text}."


def _limits(rules: Iterable[Any]) -> Iterator[tuple[str, Any, str]]:
    """Yield keyword, value and text of each rule that a schema knows."""
    for each in rules:
        keyword, text = _LIMITS.get(type(each), ("", ""))
        if keyword:
            limit = each.limit_value() if callable(each.limit_value) else each.limit_value
            value = _json_of(limit)
            if value is not None:
                yield keyword, value, text
        elif isinstance(each, validators.RegexValidator):
            pattern = _pattern(each)
            if pattern:
                yield "pattern", pattern, ""


def _means_something(keyword: str, schema: Schema) -> bool:
    kind = schema.get("type")
    if keyword in ("minimum", "maximum"):
        return kind in ("integer", "number")
    return kind == "string"


def _pattern(validator: validators.RegexValidator) -> str:
    """Return a rule as clients can apply it; nothing where they might read it otherwise."""
    expression: Any = validator.regex
    found = _PATTERN.fullmatch(expression.pattern)
    if found is None or validator.inverse_match or expression.flags != re.UNICODE:
        return ""
    begin, end = "^" if found["begin"] else "", "$" if found["end"] else ""
    return f"{begin}{found['body']}{end}"


def _json_of(value: Any) -> Any:
    """Return a value as JSON has it; nothing for what is worked out later, or is empty."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (Decimal, UUID, timedelta)):
        return str(value)
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    return value if isinstance(value, str) and value else None
