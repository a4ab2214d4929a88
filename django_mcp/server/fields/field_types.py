"""What the values of a model's field are: for the schema of a result, and as an argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from ipaddress import ip_address
from math import isfinite
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from django.conf import settings
from django.db import models
from django.utils import timezone
from pydantic import AfterValidator, Field, WithJsonSchema

from ...protocol.values import can_be_stored

Schema = dict[str, Any]

MAX_TEXT: Final = 1_000
"""Characters of a text to look for."""
MAX_CHOICES: Final = 50
"""Of more, a schema names none."""
INTEGER_BOUND: Final = 2**63
"""No database keeps an integer of more, and some fail where one is looked for."""
ZONE_BOUND: Final = timedelta(hours=16)
"""Of the distance between a zone and UTC. PostgreSQL takes no more, nor has the earth."""
MAX_DIGITS: Final = 100
"""Of a number of which nobody says how many it has. One with a hundred thousand takes seconds to
become an integer, and one with a million minutes."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """What the values of a field are."""

    schema: Schema
    """Of a value in a result."""
    value: Any = None
    """The annotation of a value; ``None`` where it cannot be an argument."""
    is_ordered: bool = False
    """Whether rows may be in the order of the values, each of which fits into a cursor."""
    is_text: bool = False
    show: Callable[[Any], Any] | None = None
    """Makes of a value what a result has of it; ``None`` where it stands as it is."""
    choices: Mapping[Any, str] = field(default_factory=dict)
    """The values that there may be, with their texts, if they are named."""

    @property
    def argument(self) -> Any:
        """The annotation of an argument with such a value; ``None`` where it cannot be one."""
        if not self.choices or self.value is None:
            return self.value
        return Annotated[Literal[tuple(self.choices)], _described(self.choices)]


def type_of(model_field: Any) -> FieldType | None:
    """Return what the values of a model's field are; ``None`` where a result cannot show them."""
    is_generated = isinstance(model_field, models.GeneratedField)
    given = model_field.output_field if is_generated else model_field
    if isinstance(given, models.BinaryField):
        return None
    base = getattr(given, "base_field", None)
    if base is not None and isinstance(base, models.Field):
        return _list_of(type_of(base))
    known = next((_TYPES[kind] for kind in _TYPES if isinstance(given, kind)), _OTHER)
    choices = choices_of(given)
    if isinstance(given, models.DecimalField):
        return replace(known, value=decimal_of(given.max_digits), choices=choices)
    # A cursor holds no more of a text than an argument does.
    is_short = not known.is_text or (given.max_length or MAX_TEXT + 1) <= MAX_TEXT
    return replace(known, choices=choices, is_ordered=known.is_ordered and is_short)


def choices_of(model_field: Any) -> dict[Any, str]:
    """Return the values that a field's choices name, with their texts.

    None without choices, or with more than a model should read each time.
    """
    choices = getattr(model_field, "flatchoices", None) or ()
    named = [(getattr(value, "value", value), str(text)) for value, text in choices]
    some = [(value, text) for value, text in named if value not in ("", None)]
    are_plain = all(isinstance(value, (str, int)) for value, _ in some)
    return dict(some) if are_plain and len(some) <= MAX_CHOICES else {}


def or_null(schema: Schema) -> Schema:
    """Return the schema of a value or null."""
    kind = schema.get("type")
    return {**schema, "type": [kind, "null"]} if isinstance(kind, str) else schema


def decimal_of(max_digits: int | None) -> Any:
    """Return the annotation of a number of so many digits at most."""
    largest = Decimal(10) ** (max_digits or MAX_DIGITS)
    return Annotated[Decimal, AfterValidator(partial(_below, largest)), _AS_STRING]


def moment(value: datetime) -> datetime:
    """Return a moment as the site's models take it: with a zone, or without one."""
    try:
        value.astimezone(UTC)
        if abs(value.utcoffset() or timedelta()) >= ZONE_BOUND:
            raise ValueError
        if settings.USE_TZ and timezone.is_naive(value):
            return timezone.make_aware(value)
        if not settings.USE_TZ and timezone.is_aware(value):
            return timezone.make_naive(value, timezone.get_default_timezone())
    except (OverflowError, ValueError):
        raise ValueError("no moment that a database knows") from None
    return value


def day(value: date) -> tuple[datetime, datetime]:
    """Return the first moment of a day and the last, in the present time zone."""
    return moment(datetime.combine(value, time.min)), moment(datetime.combine(value, time.max))


def hour(value: time) -> time:
    """Return a time of day, which no database keeps with a zone."""
    if value.tzinfo is not None:
        raise ValueError("a time without a zone")
    return value


def duration(value: timedelta) -> timedelta:
    """Return a duration that fits into the integer as which some databases keep it."""
    _integer(value // timedelta(microseconds=1))
    return value


def text(value: str) -> str:
    """Return a text that every database takes."""
    if not can_be_stored(value):
        raise ValueError("a text without NUL and without halves of characters")
    return value


def json_value(value: Any) -> Any:
    """Return a value of which all databases take the JSON."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            text(each)
        elif isinstance(each, dict):
            left += (*each.keys(), *each.values())
        elif isinstance(each, list):
            left += each
        elif isinstance(each, float) and not isfinite(each):
            raise ValueError("a number that is finite")
    return value


def _described(choices: Mapping[Any, str]) -> Any:
    """Return the description of what may be chosen, where the values do not say it themselves."""
    telling = all(_plain(text) == _plain(str(value)) for value, text in choices.items())
    texts = ", ".join(f"{value}: {text}" for value, text in choices.items())
    return Field(description=None if telling else texts)


def _list_of(items: FieldType | None) -> FieldType | None:
    return items and FieldType({"type": "array", "items": items.schema})


def _below(largest: Decimal, value: Decimal) -> Decimal:
    # By abs() it would be rounded, which fails for an exponent of millions.
    if value.copy_abs() > largest:
        raise ValueError("a number of fewer digits")
    return value


def _integer(value: int) -> int:
    if not -INTEGER_BOUND <= value < INTEGER_BOUND:
        raise ValueError("an integer of 64 bits")
    return value


def _host(value: str) -> str:
    # Some databases fail where anything else is looked for, and none has the zone of an address.
    if "%" in value:
        raise ValueError("an IP address without a zone")
    ip_address(value)
    return value


def _known_day(value: date) -> date:
    day(value)
    return value


def _known_year(value: int) -> int:
    for each in (date(value, 1, 1), date(value, 12, 31)):
        day(each)
    return value


def _plain(text: str) -> str:
    return text.lower().replace("_", " ").replace("-", " ")


def _address(value: Any) -> str | None:
    if not value:
        return None
    try:
        return str(value.url)
    except (NotImplementedError, ValueError):
        return str(value)  # a storage that serves nothing


_STRING: Final[Schema] = {"type": "string"}
_AS_STRING: Final = WithJsonSchema(_STRING)
TEXT: Final = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(text), _AS_STRING]
"""The annotation of a text to look for."""

HOUR: Final = Annotated[time, AfterValidator(hour), _AS_STRING]
"""The annotation of a time of day."""

DURATION: Final = Annotated[timedelta, AfterValidator(duration), _AS_STRING]
"""The annotation of a duration."""

FINITE: Final = Annotated[float, Field(allow_inf_nan=False)]
"""The annotation of a number, such as every database takes."""

DAY: Final = Annotated[date, AfterValidator(_known_day)]
"""The annotation of a day on which something was."""

YEAR: Final = Annotated[int, Field(ge=date.min.year, le=date.max.year)]
"""The annotation of a year in which days are."""

YEAR_OF_MOMENTS: Final = Annotated[YEAR, AfterValidator(_known_year)]
"""The same of moments: the first and the last of it are in other years elsewhere."""

# The more particular class first.
_TYPES: Final[dict[type[models.Field[Any, Any]], FieldType]] = {
    models.BooleanField: FieldType({"type": "boolean"}, bool, is_ordered=True),
    models.IntegerField: FieldType(
        {"type": "integer"}, Annotated[int, AfterValidator(_integer)], is_ordered=True
    ),
    models.FloatField: FieldType({"type": "number"}, FINITE, is_ordered=True),
    models.DecimalField: FieldType(_STRING, is_ordered=True),
    models.DateTimeField: FieldType(
        {"type": "string", "format": "date-time"},
        Annotated[datetime, AfterValidator(moment)],
        is_ordered=True,
    ),
    models.DateField: FieldType({"type": "string", "format": "date"}, date, is_ordered=True),
    models.TimeField: FieldType(_STRING, HOUR, is_ordered=True),
    models.DurationField: FieldType(_STRING, DURATION, is_ordered=True),
    models.UUIDField: FieldType(_STRING, Annotated[UUID, _AS_STRING], is_ordered=True),
    models.FileField: FieldType(_STRING, show=_address),
    models.GenericIPAddressField: FieldType(_STRING, Annotated[TEXT, AfterValidator(_host)]),
    models.CharField: FieldType(_STRING, TEXT, is_ordered=True, is_text=True),
    models.TextField: FieldType(_STRING, TEXT, is_text=True),
    models.JSONField: FieldType({}),
}
_OTHER: Final = FieldType(_STRING, show=lambda value: None if value is None else str(value))
