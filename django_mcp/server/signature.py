"""A function's signature as a JSON Schema, and JSON arguments as its typed values.

Everything is worked out once, at registration, and what cannot be expressed is refused there, with
the cure in the message.
"""

from __future__ import annotations

import inspect
import json
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from .context import Context
from .docstrings import Docstring, parse_docstring
from .errors import RegistrationError


class ArgumentError(ValueError):
    """Arguments that do not fit; the text names each one and what was expected of it."""


class PlainJsonSchema(GenerateJsonSchema):
    """JSON Schema 2020-12 without the titles that merely repeat names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave titles to those who wrote one."""
        return False


class Signature:
    """What a function takes: its JSON Schema, and the way from JSON to its keyword arguments."""

    empty = inspect.Signature.empty

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.label = getattr(function, "__qualname__", repr(function))
        self.docstring: Docstring = parse_docstring(inspect.getdoc(function) or "")
        self.is_async = is_async(function)
        self.context_parameter: str | None = None
        self._hints = self._resolve_hints()
        self.return_type: Any = self._hints.get("return", self.empty)
        self._fields: dict[str, str] = {}
        self._model = self._build_model()
        self.names: tuple[str, ...] = tuple(self._fields.values())
        self.schema: dict[str, Any] = self._build_schema()

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters without a default."""
        return tuple(self.schema.get("required", ()))

    def bind(
        self, arguments: Mapping[str, Any], *, strict: bool = True, context: Context | None = None
    ) -> dict[str, Any]:
        """Return the keyword arguments for ``arguments``; raises :class:`ArgumentError`."""
        problems = []
        if strict and not arguments.keys() <= set(self.names):
            problems = self._unknown(arguments)
        try:
            model = self._validate(arguments)
        except ValidationError as error:
            problems += [_explain(details) for details in error.errors(include_url=False)]
        if problems:
            raise ArgumentError("Invalid arguments. " + " ".join(problems))
        values = {name: getattr(model, field) for field, name in self._fields.items()}
        if self.context_parameter is not None:
            values[self.context_parameter] = context
        return values

    def annotation(self, name: str) -> Any:
        """Return the resolved annotation of the parameter ``name``, without ``Annotated``."""
        hint = self._hints[name]
        return get_args(hint)[0] if get_origin(hint) is Annotated else hint

    def _validate(self, arguments: Mapping[str, Any]) -> BaseModel:
        try:
            return self._model.model_validate(arguments)
        except ValidationError as error:
            decoded = _decode_json_strings(arguments, error)
            if decoded is None:
                raise
            return self._model.model_validate(decoded)

    def _unknown(self, arguments: Mapping[str, Any]) -> list[str]:
        taken = ", ".join(self.names) or "no arguments"
        return [
            f"{name}: unknown argument (this takes {taken})."
            for name in arguments
            if name not in self.names
        ]

    def _resolve_hints(self) -> dict[str, Any]:
        function = self.function
        target = function if inspect.isroutine(function) else type(function).__call__
        try:
            return typing.get_type_hints(target, include_extras=True)
        except NameError as error:
            raise RegistrationError(
                f"{self.label}: the annotation names {error.name!r}, which its module does not "
                "have at run time. Import it outside `if TYPE_CHECKING:`, at module level."
            ) from error

    def _build_model(self) -> type[BaseModel]:
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(self.function).parameters.values():
            if is_context(self._hints.get(parameter.name)):
                self.context_parameter = parameter.name
                continue
            # Fields get neutral names and the parameter's as alias, because a parameter may be
            # called as a method of BaseModel is.
            field = f"field_{len(fields)}"
            fields[field] = self._field(parameter)
            self._fields[field] = parameter.name
        try:
            return create_model("Arguments", __config__=ConfigDict(extra="ignore"), **fields)
        except PydanticUserError as error:
            raise self._refuse("its parameters", error) from error

    def _field(self, parameter: inspect.Parameter) -> Any:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise RegistrationError(
                f"{self.label}: *{parameter.name} has no JSON Schema. Name every parameter."
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise RegistrationError(
                f"{self.label}: {parameter.name!r} is positional-only, but arguments come by "
                "name. Remove the `/` from the signature."
            )
        if parameter.name not in self._hints:
            raise RegistrationError(
                f"{self.label}: annotate the parameter {parameter.name!r}, for example "
                f"`{parameter.name}: str`, so that clients know what to send."
            )
        return self._annotated(parameter)

    def _annotated(self, parameter: inspect.Parameter) -> Any:
        annotation = self._hints[parameter.name]
        for extra in get_args(annotation)[1:] if get_origin(annotation) is Annotated else ():
            if isinstance(extra, FieldInfo) and extra.alias not in (None, parameter.name):
                raise RegistrationError(
                    f"{self.label}: rename the parameter {parameter.name!r} instead of giving it "
                    f"the alias {extra.alias!r}."
                )
        default = parameter.default
        if isinstance(default, FieldInfo):
            annotation, default = Annotated[annotation, default], parameter.empty
        described = self.docstring.parameters.get(parameter.name)
        if described is not None and not _has_description(annotation):
            annotation = Annotated[annotation, Field(description=described)]
        if default is parameter.empty:
            return annotation, Field(alias=parameter.name)
        return annotation, Field(default, alias=parameter.name)

    def _build_schema(self) -> dict[str, Any]:
        try:
            with warnings.catch_warnings():
                # A default without a JSON form is left out of the schema; that is all it means.
                warnings.filterwarnings("ignore", module="pydantic.json_schema")
                schema = self._model.model_json_schema(schema_generator=PlainJsonSchema)
        except PydanticUserError as error:
            raise self._refuse("its parameters", error) from error
        schema.pop("title", None)
        schema.setdefault("properties", {})
        return schema

    def _refuse(self, what: str, error: PydanticUserError) -> RegistrationError:
        return RegistrationError(
            f"{self.label}: {what} cannot be expressed as JSON Schema ({error.message}). Use "
            "types that pydantic knows: str, int, float, bool, datetime, Enum, Literal, lists, "
            "dicts, dataclasses, TypedDicts or pydantic models."
        )


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling ``function`` makes a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method is inspected, not tested
    )


def is_context(annotation: Any) -> bool:
    """Return whether a parameter so annotated wants the :class:`Context`."""
    if get_origin(annotation) in (Union, types.UnionType, Annotated):
        return any(is_context(argument) for argument in get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, Context)


def _has_description(annotation: Any) -> bool:
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return any(isinstance(extra, FieldInfo) and extra.description for extra in extras)


def _decode_json_strings(
    arguments: Mapping[str, Any], error: ValidationError
) -> dict[str, Any] | None:
    # Some clients send a list or an object as the string of its JSON. Where a string does not fit
    # and its JSON does, that is what was meant.
    decoded = dict(arguments)
    for details in error.errors(include_url=False, include_context=False):
        name = details["loc"][0] if details["loc"] else None
        text = arguments.get(name) if isinstance(name, str) else None
        if isinstance(text, str) and text.lstrip()[:1] in ("[", "{"):
            try:
                decoded[str(name)] = json.loads(text)
            except (ValueError, RecursionError):
                return None
    return decoded if decoded != dict(arguments) else None


def _explain(details: Any) -> str:
    where = ".".join(str(part) for part in details["loc"])
    if details["type"] == "missing":
        return f"{where}: this argument is required."
    given = repr(details["input"])
    return f"{where}: {details['msg']} (given: {given[:100]})."
