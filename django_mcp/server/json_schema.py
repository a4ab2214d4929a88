"""JSON Schema as pydantic derives it from types, put right where it would mislead a client."""

from __future__ import annotations

import enum
import json
from typing import Any, Final

from pydantic.errors import (
    PydanticErrorMixin,
    PydanticInvalidForJsonSchema,
    PydanticUndefinedAnnotation,
    PydanticUserError,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, SchemaError, to_json

from .inlining import NULL

SCHEMA_ERRORS: Final = (
    PydanticUserError,
    PydanticUndefinedAnnotation,
    SchemaError,
    TypeError,
    ValueError,
)
"""What pydantic raises for types that it cannot express, or constraints that make no sense."""


class PlainJsonSchema(GenerateJsonSchema):
    """JSON Schema 2020-12 without the titles that merely repeat names."""

    # A default without a JSON form is left out of the schema; that is all it means.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave titles to those who wrote one."""
        return False

    def encode_default(self, dft: Any) -> Any:
        """Encode a default, unless JSON has no word for it (infinity, for example)."""
        encoded = super().encode_default(dft)
        try:
            json.dumps(encoded, allow_nan=False)
        except ValueError as error:
            raise PydanticSerializationError(str(error)) from error
        return encoded

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Give the members of a set one order, the same in every process."""
        described = super().default_schema(schema)
        if described.get("uniqueItems") and isinstance(described.get("default"), list):
            described["default"] = sorted(described["default"], key=to_json)
        return described

    def literal_schema(self, schema: Any) -> dict[str, Any]:
        """Describe None apart from values of a type; refuse what is described but not accepted."""
        members = [each for each in schema["expected"] if isinstance(each, enum.Enum)]
        if self.mode == "validation" and not all(isinstance(each, (str, int)) for each in members):
            raise PydanticInvalidForJsonSchema("Literal takes members of str or int Enums alone")
        others = [each for each in schema["expected"] if each is not None]
        if not others or len(others) == len(schema["expected"]):
            return super().literal_schema(schema)
        some: Any = {**schema, "expected": others}
        return {"anyOf": [super().literal_schema(some), dict(NULL)]}

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a union of models by ``anyOf``: clients know ``oneOf`` and its mapping less."""
        return {"anyOf": super().tagged_union_schema(schema)["oneOf"]}

    def generator_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse what would be validated only while the function reads it."""
        if self.mode == "validation":
            raise PydanticInvalidForJsonSchema("Iterable is checked too late; use list instead")
        return super().generator_schema(schema)


def reason(error: Exception) -> str:
    """Return what pydantic objects to, without its advice, which is for those who write models."""
    if isinstance(error, PydanticErrorMixin):
        return error.message.split("\n")[0].split(". Set ")[0].rstrip(".")
    return " ".join(str(error).split())
