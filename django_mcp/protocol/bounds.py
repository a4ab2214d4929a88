"""What reading a message may cost: counted before it is parsed, cut short when it is not valid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel
from pydantic_core import SchemaValidator

Model = TypeVar("Model", bound=BaseModel)

_COLLECTIONS: Final = ("list", "set", "frozenset", "tuple", "dict")
# Whatever stands before the next mark of structure, text in quotes as a whole. It matches anything,
# and never goes back, so that no byte is looked at twice.
_STRUCTURE: Final = re.compile(
    rb'(?:[^"\[{,]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+(?:([\[{,])|\Z)', re.DOTALL
)


def has_more_values(body: bytes, most: int) -> bool:
    """Return whether JSON has more than ``most`` values, without parsing it.

    Counted are its objects, its arrays, and what they hold beside the first. Text is one value,
    whatever marks are in it.
    """
    at_most = body.count(b",") + body.count(b"[") + body.count(b"{")
    return at_most > most and next(islice(_values(body), most, None), None) is not None


def count_values(body: bytes) -> int:
    """Return how many values JSON has, counted in the same way."""
    return sum(1 for _ in _values(body))


def _values(body: bytes) -> Iterator[re.Match[bytes]]:
    return (match for match in _STRUCTURE.finditer(body) if match.lastindex)


def validate(model: type[Model], value: Any) -> Model:
    """Return JSON as a model; raises ``ValidationError`` with the first errors alone.

    Pydantic's own methods collect an error for each item of a list, which may take hundreds of
    times the memory of what was sent.
    """
    return cast("Model", _validator(model).validate_python(value, by_alias=True, by_name=False))


@lru_cache(maxsize=256)
def _validator(model: type[BaseModel]) -> SchemaValidator:
    model.model_rebuild()  # if it has waited for others to be defined
    schema = _hasty(model.__pydantic_core_schema__)
    try:
        # Models within models would bring validators of their own, which go on to the end.
        return SchemaValidator(schema, _use_prebuilt=False)
    except TypeError:  # pydantic 2.12 cannot be told; there the outermost lists alone end early
        return SchemaValidator(schema)


def _hasty(schema: Any) -> Any:
    """Return a copy of a core schema in which each collection ends at its first error."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_hasty, schema))
    if not isinstance(schema, dict):
        return schema
    copy = {key: _hasty(value) for key, value in schema.items()}
    is_collection = any(schema.get("type") == kind for kind in _COLLECTIONS)
    return copy | {"fail_fast": True} if is_collection else copy
