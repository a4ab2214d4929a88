"""A function's signature as a JSON Schema, and JSON arguments as its typed values.

Everything is worked out once, at registration, and what cannot be expressed is refused there, with
the cure in the message.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import from_json, to_json

from ..protocol.bounded import Validating, Validator
from ..protocol.values import MANY_VALUES, exceeds, most_values
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
from .leniency import with_nulls
from .problems import Problems, cut
from .questions.declared import Ask, Asked, ask_of, build_asked, check_argument, without_ask
from .questions.kinds import UNSET

if TYPE_CHECKING:
    from .exchange import Exchange

MAX_DECODED_CHARACTERS: Final = 1_000_000
"""Length of the strings in the arguments of a call that are parsed as JSON, together."""
MAX_DECODED_VALUES: Final = 100_000
"""Values in one of them."""


class ArgumentError(ValueError):
    """Arguments that do not fit; the text names each one and what was expected of it."""


class Signature:
    """What a function takes: its JSON Schema, and the way from JSON to its keyword arguments.

    With ``unasked`` what would be asked for is an argument, where the site has said that it may be.
    """

    empty = inspect.Signature.empty

    def __init__(self, function: Callable[..., Any], *, unasked: bool = False) -> None:
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
        self._asks = self._find_asks(parameters)
        self._instead = self._find_arguments() if unasked else {}
        self._fields: dict[str, str] = {}
        self._model = self._build_model(parameters)
        self._validator = Validator(self._model)
        self.names: tuple[str, ...] = tuple(self._fields.values())
        self._known = frozenset(self.names)
        self.asked: tuple[Asked, ...] = self._build_asked()
        self.schema: dict[str, Any] = self._build_schema()
        self.unasked: Signature | None = None
        """The same where nobody can be asked, if that makes a difference."""
        if any(ask.or_argument for ask in self._asks.values()) and not unasked:
            self.unasked = Signature(function, unasked=True)

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters without a default."""
        return tuple(self.schema.get("required", ()))

    @property
    def is_costly(self) -> bool:
        """Whether even few arguments may take time worth mentioning to validate."""
        return self._validator.needs_bounds

    @property
    def depends_on_caller(self) -> bool:
        """Whether what the function returns may depend on who calls it."""
        return self.context_parameter is not None or bool(self.asked)

    def bind(
        self, arguments: Mapping[str, Any], *, strict: bool = True, exchange: Exchange | None = None
    ) -> dict[str, Any]:
        """Return the keyword arguments for ``arguments``; raises :class:`ArgumentError`."""
        if exchange is None:
            validating = self._validator.begin(many=False)
        else:
            request = exchange.request
            validating = self._validator.begin(many=request.many, large=request.is_large)
        is_known = not strict or arguments.keys() <= self._known
        try:
            model = self._validate(arguments, validating)
        except ValidationError as error:
            raise self._problems(arguments, strict, error) from None
        if not is_known:
            raise self._problems(arguments, strict)
        # Not by attribute: reading a deprecated field warns.
        values = {name: model.__dict__[field] for field, name in self._fields.items()}
        if self._instead:
            values = {name: value for name, value in values.items() if value is not UNSET}
        if self.context_parameter is not None and exchange is not None:
            values[self.context_parameter] = self._context_type(exchange)
        return values

    def annotation(self, name: str) -> Any:
        """Return the resolved annotation of the parameter ``name``, without ``Annotated``."""
        return bare(self._hints[name])

    def _validate(self, arguments: Mapping[str, Any], validating: Validating) -> BaseModel:
        try:
            model: BaseModel = validating.validate_python(arguments)
        except ValidationError:
            return self._validate_as_json(arguments, validating)
        return model

    def _validate_as_json(self, arguments: Mapping[str, Any], validating: Validating) -> BaseModel:
        # The second try is as JSON: there even strict models take a date from a string, and the
        # errors speak of arrays and objects.
        model: BaseModel
        try:
            model = validating.validate_json(to_json(arguments))
        except ValidationError as error:
            decoded = _decode_strings(arguments, error)
            if not decoded:
                return self._validate_with_nulls(arguments, error, validating)
        else:
            return model
        arguments = {**arguments, **decoded}
        text = to_json(arguments)
        if most_values(text) > MANY_VALUES:
            validating = self._validator.begin(many=True)
        try:
            model = validating.validate_json(text)
        except ValidationError as error:
            return self._validate_with_nulls(arguments, error, validating)
        return model

    def _validate_with_nulls(
        self, arguments: Mapping[str, Any], error: ValidationError, validating: Validating
    ) -> BaseModel:
        optional = set(self.names) - set(self.required)
        repaired = with_nulls(arguments, error, optional)
        if repaired is None:
            raise error
        try:
            model: BaseModel = validating.validate_json(to_json(repaired))
        except ValidationError:
            raise error from None
        return model

    def _problems(
        self, arguments: Mapping[str, Any], strict: bool, error: ValidationError | None = None
    ) -> ArgumentError:
        problems = Problems()
        taken = ", ".join(self.names) or "no arguments"
        for name in arguments if strict else ():
            if name not in self._known:
                problems.add(
                    partial("{}: unknown argument (this takes {}).".format, cut(name), taken)
                )
        if error is not None:
            problems.note(error, beside=self._left_out(arguments))
        return ArgumentError(f"Invalid arguments. {problems}")

    def _left_out(self, arguments: Mapping[str, Any]) -> set[str]:
        """Return the names of what is null and need not be given: that is no mistake by itself."""
        nulls = {name for name, value in arguments.items() if value is None}
        return nulls & (set(self.names) - set(self.required))

    def _build_model(self, parameters: list[inspect.Parameter]) -> type[BaseModel]:
        fields: dict[str, Any] = {}
        for parameter in parameters:
            is_asked = parameter.name in self._asks and parameter.name not in self._instead
            if is_asked or self._takes_context(parameter):
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

    def _find_asks(self, parameters: list[inspect.Parameter]) -> dict[str, Ask]:
        found = {each.name: ask_of(self._hints.get(each.name)) for each in parameters}
        asks = {name: ask for name, ask in found.items() if ask is not None}
        for name, ask in asks.items():
            self._hints[name] = without_ask(self._hints[name], ask)
        return asks

    def _find_arguments(self) -> dict[str, Ask]:
        """Return what is an argument, although it would be asked for if that were possible."""
        found = {name: ask for name, ask in self._asks.items() if ask.or_argument}
        for name in found:
            check_argument(name, self._hints[name], of=self.function)
        return found

    def _build_asked(self) -> tuple[Asked, ...]:
        others = [name for name in self.names if name not in self._instead]
        return tuple(
            build_asked(
                name,
                self._hints[name],
                ask,
                others,
                of=self.function,
                is_argument=name in self._instead,
            )
            for name, ask in self._asks.items()
            if name not in self._instead or ask.message is None
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
        ask = self._instead.get(name)
        described = self.docstring.parameters.get(name) or (ask.message if ask else None)
        if described is not None and not _has_description(annotation):
            annotation = Annotated[annotation, Field(description=described)]
        if ask is not None and ask.message is None:
            # Whether it is asked for at all is not known before the function has said so.
            return annotation, Field(default_factory=lambda: UNSET, alias=name)
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
    left = MAX_DECODED_CHARACTERS
    for details in error.errors(include_url=False, include_context=False):
        name = next(iter(details["loc"]), None)
        text = arguments.get(str(name))
        if isinstance(text, str) and _wants_other_json(details["type"], text):
            left -= len(text)
            try:
                decoded[str(name)] = _decode(text) if left >= 0 else text
            except ValueError:
                continue
    return decoded


def _decode(text: str) -> Any:
    if exceeds(text.encode("utf-8", "replace"), MAX_DECODED_VALUES):
        raise ValueError("The string holds too many values")
    return from_json(text, allow_inf_nan=False)


def _wants_other_json(expected: str, text: str) -> bool:
    if text.lstrip()[:1] in ("[", "{"):
        return expected.endswith("_type")
    return expected in ("literal_error", "enum") and text != "null"
