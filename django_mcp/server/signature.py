"""A function's signature as a JSON Schema, and JSON arguments as its typed values.

Everything is worked out once, at registration, and what cannot be expressed is refused there, with
the cure in the message.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import from_json, to_json

from .context import Context
from .docstrings import Docstring, parse_docstring
from .errors import RegistrationError
from .functions import (
    bare,
    check,
    context_type,
    documentation_of,
    hints_of,
    is_async,
    label_of,
    parameters_of,
)
from .json_schema import SCHEMA_ERRORS, PlainJsonSchema, reason
from .questions.declared import Asked, ask_of, build_asked

if TYPE_CHECKING:
    from .exchange import Exchange

MAX_PROBLEMS: Final = 10
"""How many of the problems with a call's arguments are told at once."""


class ArgumentError(ValueError):
    """Arguments that do not fit; the text names each one and what was expected of it."""


class Signature:
    """What a function takes: its JSON Schema, and the way from JSON to its keyword arguments."""

    empty = inspect.Signature.empty

    def __init__(self, function: Callable[..., Any]) -> None:
        check(function)
        self.function = function
        self.label = label_of(function)
        self.docstring: Docstring = parse_docstring(documentation_of(function))
        self.is_async = is_async(function)
        self.context_parameter: str | None = None
        self._context_type = Context
        parameters = parameters_of(function)
        self._hints = hints_of(function)
        self.return_type: Any = self._hints.get("return", self.empty)
        self._fields: dict[str, str] = {}
        self._model = self._build_model(parameters)
        self.names: tuple[str, ...] = tuple(self._fields.values())
        self.asked: tuple[Asked, ...] = self._build_asked(parameters)
        self.schema: dict[str, Any] = self._build_schema()

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters without a default."""
        return tuple(self.schema.get("required", ()))

    @property
    def depends_on_caller(self) -> bool:
        """Whether what the function returns may depend on who calls it."""
        return self.context_parameter is not None or bool(self.asked)

    def bind(
        self, arguments: Mapping[str, Any], *, strict: bool = True, exchange: Exchange | None = None
    ) -> dict[str, Any]:
        """Return the keyword arguments for ``arguments``; raises :class:`ArgumentError`."""
        problems: list[str] = []
        if strict and not arguments.keys() <= set(self.names):
            problems = self._unknown(arguments)
        try:
            model = self._validate(arguments)
        except ValidationError as error:
            problems += _explain(error)
        if problems:
            raise ArgumentError("Invalid arguments. " + " ".join(_some(problems)))
        # Not by attribute: reading a deprecated field warns.
        values = {name: model.__dict__[field] for field, name in self._fields.items()}
        if self.context_parameter is not None and exchange is not None:
            values[self.context_parameter] = self._context_type(exchange)
        return values

    def annotation(self, name: str) -> Any:
        """Return the resolved annotation of the parameter ``name``, without ``Annotated``."""
        return bare(self._hints[name])

    def _validate(self, arguments: Mapping[str, Any]) -> BaseModel:
        try:
            return self._model.model_validate(arguments)
        except ValidationError:
            return self._validate_as_json(arguments)

    def _validate_as_json(self, arguments: Mapping[str, Any]) -> BaseModel:
        # The second try is as JSON: there even strict models take a date from a string, and the
        # errors speak of arrays and objects.
        try:
            return self._model.model_validate_json(to_json(arguments))
        except ValidationError as error:
            decoded = _decode_strings(arguments, error)
            if not decoded:
                raise
        return self._model.model_validate_json(to_json({**arguments, **decoded}))

    def _unknown(self, arguments: Mapping[str, Any]) -> list[str]:
        taken = ", ".join(self.names) or "no arguments"
        return [
            f"{_short(name)}: unknown argument (this takes {taken})."
            for name in arguments
            if name not in self.names
        ]

    def _build_model(self, parameters: list[inspect.Parameter]) -> type[BaseModel]:
        fields: dict[str, Any] = {}
        for parameter in parameters:
            if self._takes_context(parameter) or ask_of(self._hints.get(parameter.name)):
                continue
            # Fields get neutral names and the parameter's as alias, because a parameter may be
            # called as a method of BaseModel is.
            field = f"field_{len(fields)}"
            fields[field] = self._field(parameter)
            self._fields[field] = parameter.name
        config = ConfigDict(extra="ignore", allow_inf_nan=False)
        try:
            model: type[BaseModel] = create_model("Arguments", __config__=config, **fields)
            model.model_rebuild()
        except SCHEMA_ERRORS as error:
            raise self._refuse(error) from error
        return model

    def _build_asked(self, parameters: list[inspect.Parameter]) -> tuple[Asked, ...]:
        asks = {each.name: ask_of(self._hints.get(each.name)) for each in parameters}
        return tuple(
            build_asked(name, self._hints[name], ask, self.names, of=self.function)
            for name, ask in asks.items()
            if ask is not None
        )

    def _takes_context(self, parameter: inspect.Parameter) -> bool:
        wanted = context_type(self._hints.get(parameter.name))
        if wanted is None:
            return False
        if self.context_parameter is not None:
            raise RegistrationError(f"{self.label} takes two contexts; one is enough.")
        self.context_parameter, self._context_type = parameter.name, wanted
        return True

    def _field(self, parameter: inspect.Parameter) -> Any:
        name, default = parameter.name, parameter.default
        if name in ("self", "cls") and name not in self._hints:
            raise RegistrationError(
                f"{self.label} is a method. Register it bound to an object: "
                "`mcp.tool(Reports().monthly)`."
            )
        if name not in self._hints:
            is_context = name in ("ctx", "context")
            cure = (
                f"`{name}: Context` (from django_mcp import Context), to get the call's context."
                if is_context
                else f"for example `{name}: str`, so that clients know what to send."
            )
            raise RegistrationError(f"{self.label}: annotate the parameter {name!r}, {cure}")
        annotation = self._hints[name]
        if isinstance(default, FieldInfo):
            annotation, default = Annotated[annotation, default], parameter.empty
        self._check_alias(name, annotation)
        described = self.docstring.parameters.get(name)
        if described is not None and not _has_description(annotation):
            annotation = Annotated[annotation, Field(description=described)]
        if default is parameter.empty:
            return annotation, Field(alias=name)
        return annotation, Field(default, alias=name)

    def _check_alias(self, name: str, annotation: Any) -> None:
        for extra in _field_infos(annotation):
            for alias in (extra.alias, extra.validation_alias):
                if alias not in (None, name):
                    raise RegistrationError(
                        f"{self.label}: rename the parameter {name!r} instead of giving it the "
                        f"alias {alias!r}."
                    )

    def _build_schema(self) -> dict[str, Any]:
        try:
            schema = self._model.model_json_schema(schema_generator=PlainJsonSchema)
        except SCHEMA_ERRORS as error:
            raise self._refuse(error) from error
        schema.pop("title", None)
        schema.setdefault("properties", {})
        return schema

    def _refuse(self, error: Exception) -> RegistrationError:
        return RegistrationError(
            f"{self.label}: its parameters cannot be expressed as JSON Schema ({reason(error)}). "
            "Use types that pydantic knows: str, int, float, bool, datetime, Enum, Literal, lists, "
            "dicts, dataclasses, TypedDicts or pydantic models."
        )


def _field_infos(annotation: Any) -> list[FieldInfo]:
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return [extra for extra in extras if isinstance(extra, FieldInfo)]


def _has_description(annotation: Any) -> bool:
    return any(extra.description for extra in _field_infos(annotation))


def _decode_strings(arguments: Mapping[str, Any], error: ValidationError) -> dict[str, Any]:
    # Some clients send a list or an object as the string of its JSON, and everything that a prompt
    # or a URI gets is a string. Where a string does not fit and its JSON does, that is what was
    # meant.
    decoded: dict[str, Any] = {}
    for details in error.errors(include_url=False, include_context=False):
        name = details["loc"][0]
        text = arguments.get(str(name))
        if isinstance(text, str) and _wants_other_json(details["type"], text):
            try:
                decoded[str(name)] = from_json(text, allow_inf_nan=False)
            except ValueError:
                continue
    return decoded


def _wants_other_json(expected: str, text: str) -> bool:
    if text.lstrip()[:1] in ("[", "{"):
        return expected.endswith("_type")
    return expected in ("literal_error", "enum")


def _explain(error: ValidationError) -> list[str]:
    return [_problem(details) for details in error.errors(include_url=False, include_context=False)]


def _problem(details: Any) -> str:
    where = ".".join(_short(str(part)) for part in details["loc"])
    if details["type"] == "missing":
        return f"{where}: this argument is required."
    expected = _short(details["msg"], 1000)
    return f"{where}: {expected} (given: {_short(repr(details['input']))})."


def _some(problems: list[str]) -> list[str]:
    left = len(problems) - MAX_PROBLEMS
    return problems if left <= 0 else [*problems[:MAX_PROBLEMS], f"And {left} more like these."]


def _short(text: str, limit: int = 100) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
