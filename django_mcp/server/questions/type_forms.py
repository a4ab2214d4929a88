"""Python types as forms: models of flat fields, single values, choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import to_json

from ..arguments import MAX_PROBLEMS
from ..json_schema import SCHEMA_ERRORS, PlainJsonSchema, reason
from .fields import FORMATS, Field, FieldKind, InvalidAnswer, Option, chosen

VALUE: Final = "value"
"""The name of the only field where a question asks for a single value."""

_LIMITS: Final = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
}


class TypeForm:
    """A form that asks for a value of a Python type."""

    def __init__(self, annotation: Any) -> None:
        self._label = getattr(annotation, "__name__", None) or repr(annotation)
        schema = self._describe(annotation)
        self._single = "properties" not in schema
        if self._single:
            schema = {"properties": {VALUE: schema}, "required": [VALUE]}
        self._nullable: set[str] = set()
        self._values: dict[str, dict[str, Any]] = {}
        required = schema.get("required", ())
        self.fields: Sequence[Field] = tuple(
            self._field(name, described, required=name in required)
            for name, described in schema["properties"].items()
        )

    def read(self, content: Mapping[str, Any]) -> Any:
        """Return the value that an answer stands for; raises :class:`InvalidAnswer`."""
        values: dict[str, Any] = dict.fromkeys(self._nullable)
        for each in self.fields:
            if content.get(each.name) is not None:
                values[each.name] = self._original(each, chosen(each, content[each.name]))
        if self._single and VALUE not in values:
            raise InvalidAnswer(["A value is required."])
        try:
            return self._adapter.validate_json(to_json(values[VALUE] if self._single else values))
        except ValidationError as error:
            raise InvalidAnswer(list(islice(_problems(error), MAX_PROBLEMS))) from None

    def _describe(self, annotation: Any) -> dict[str, Any]:
        try:
            self._adapter = _adapter(annotation)
            schema = self._adapter.json_schema(schema_generator=_Described)
        except SCHEMA_ERRORS as error:
            raise TypeError(
                f"A question cannot ask for {self._label}: {reason(error)}. {_ASK_FLAT}"
            ) from error
        self._definitions: dict[str, Any] = schema.pop("$defs", {})
        return self._resolve(schema)

    def _resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        reference = schema.get("$ref")
        if reference is None:
            return schema
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return self._resolve({**self._definitions[reference.rsplit("/", 1)[-1]], **beside})

    def _field(self, name: str, schema: dict[str, Any], *, required: bool) -> Field:
        schema, nullable = self._flat(schema)
        if required and nullable:
            # There is no null to answer with; without an answer it is meant.
            self._nullable.add(name)
        known = {key: schema.get(key) for key in ("title", "description", "default")}
        common: dict[str, Any] = {"name": name, "required": required and not nullable, **known}
        if schema.get("writeOnly"):
            raise self._refuse(
                name, "is a secret, which must not pass through the client", _ASK_BY_URL
            )
        if schema.get("type") == "array":
            inner, _ = self._flat(schema.get("items", {}))
            if "enum" in inner or "const" in inner:
                return self._choice(inner, "choices", common, _limits(schema))
        elif "enum" in schema or "const" in schema:
            return self._choice(schema, "choice", common, {})
        kind = schema.get("type")
        if kind not in ("string", "integer", "number", "boolean"):
            raise self._refuse(name, "is not a flat value", _ASK_FLAT)
        return Field(kind=kind, limits=_limits(schema), **common)

    def _flat(self, schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Return a schema without references and alternatives, and whether null is one of them."""
        schema = self._resolve(schema)
        kinds = [self._resolve(each) for each in schema.get("anyOf", ())]
        others = [each for each in kinds if each.get("type") != "null"]
        nullable = len(others) < len(kinds)
        if [each.get("type") for each in others] == ["number", "string"]:
            # Decimal, which may also be written as text.
            others.pop()
        if len(others) != 1:
            return schema, nullable
        beside = {key: value for key, value in schema.items() if key != "anyOf"}
        inner, also_nullable = self._flat(others[0])
        return {**inner, **beside}, nullable or also_nullable

    def _choice(
        self,
        schema: dict[str, Any],
        kind: FieldKind,
        common: dict[str, Any],
        limits: Mapping[str, Any],
    ) -> Field:
        originals = schema.get("enum", [schema.get("const")])
        titles = schema.get("enumNames") or schema.get(_TITLES) or _one_of(schema)
        self._values[common["name"]] = {str(value): value for value in originals}
        if common["title"] == schema.get(_CLASS):
            common["title"] = None
        default = common["default"]
        if default is not None:
            default = [str(v) for v in default] if kind == "choices" else str(default)
        each = Field(
            kind=kind,
            limits=limits,
            options=[
                Option(str(value), title)
                for value, title in zip(originals, titles or [None] * len(originals), strict=True)
            ],
            enum_names="enumNames" in schema,
            **common,
        )
        return replace(each, default=default)

    def _original(self, each: Field, value: Any) -> Any:
        # Choices that are numbers went out as text.
        values = self._values.get(each.name, {})
        if isinstance(value, list):
            return [values.get(str(item), item) for item in value]
        return values.get(str(value), value)

    def _refuse(self, name: str, problem: str, cure: str) -> TypeError:
        where = self._label if self._single else f"{self._label}.{name}"
        return TypeError(f"A question cannot ask for {where}: it {problem}. {cure}")


_TITLES: Final = "titles"
_CLASS: Final = "class"
_ASK_BY_URL: Final = "Send the user to a page of yours with ctx.elicit_url()."
_ASK_FLAT: Final = (
    "Use str, int, float, bool, Decimal, date, datetime, an Enum, a Literal or a list of either; "
    "take the rest in another question, or as an argument."
)


class _Described(PlainJsonSchema):
    """Schemas in which choices have the labels that Django's choices have."""

    def enum_schema(self, schema: Any) -> dict[str, Any]:
        """Add what the members are called, and what the class is, which is no title."""
        described = super().enum_schema(schema)
        described[_CLASS] = schema["cls"].__name__
        labels = [getattr(member, "label", None) for member in schema["members"]]
        if any(labels):
            described[_TITLES] = [str(label) for label in labels]
        return described


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation, config=ConfigDict(allow_inf_nan=False))
    except PydanticUserError:
        # A model has a configuration of its own.
        return TypeAdapter(annotation)


def _one_of(schema: dict[str, Any]) -> list[str]:
    return [each["title"] for each in schema.get("oneOf", ())]


def _limits(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema["type"]
    limits = {name: schema[name] for name in _LIMITS.get(kind, ()) if name in schema}
    if kind == "integer":
        # There are no exclusive limits, and for integers no need of them.
        if "exclusiveMinimum" in schema:
            limits["minimum"] = schema["exclusiveMinimum"] + 1
        if "exclusiveMaximum" in schema:
            limits["maximum"] = schema["exclusiveMaximum"] - 1
    if schema.get("format") in FORMATS:
        limits["format"] = schema["format"]
    return limits


def _problems(error: ValidationError) -> Iterator[str]:
    for details in error.errors(include_url=False, include_context=False, include_input=False):
        where = ".".join(str(part) for part in details["loc"])
        yield f"{where}: {details['msg']}." if where else f"{details['msg']}."
