"""A function's signature as a JSON Schema, and JSON arguments as its typed values.

Everything is worked out once, at registration, and what cannot be expressed is refused there, with
the cure in the message.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from ..protocol.bounded import Validating, Validator
from .arguments import ArgumentError, argument_error, validate_leniently
from .asked_parameters import (
    Ask,
    AskedParameter,
    ask_of,
    build_asked,
    check_argument,
    with_answers,
    without_ask,
)
from .context import ContextParameter, ProvidedParameter, RequestParameter, provided_parameter
from .errors import RegistrationError
from .exchange import Exchange
from .filled_parameters import (
    FilledParameter,
    Load,
    LoadedParameter,
    Provide,
    build_filled,
    filling_of,
    with_filled,
)
from .functions import (
    Docstring,
    bare,
    check,
    documentation_of,
    hints_of,
    is_async,
    label_of,
    parameters_of,
    parse_docstring,
)
from .json_schema import SCHEMA_ERRORS, PlainJsonSchema, reason
from .questions.asking import Questions
from .questions.kinds import UNSET


class Signature:
    """What a function takes: its JSON Schema, and the way from JSON to its keyword arguments.

    With ``without_asking`` a parameter that would be asked for is an argument, where the site has
    said that it may be.
    """

    empty = inspect.Signature.empty

    def __init__(self, function: Callable[..., Any], *, without_asking: bool = False) -> None:
        check(function)
        self.function = function
        self.label = label_of(function)
        self.docstring: Docstring = parse_docstring(documentation_of(function))
        self.is_async = is_async(function)
        parameters = parameters_of(function)
        self._hints = hints_of(function)
        self.return_type: Any = self._hints.get("return", self.empty)
        self._asks = self._find_asks(parameters)
        self._fillings = self._find_fillings(parameters)
        self.provided = self._find_provided(parameters)
        """The parameter that takes a context or the HTTP request."""
        self._as_arguments = self._find_arguments() if without_asking else {}
        self.filled = self._build_filled(parameters)
        """The parameters that the server fills in."""
        self._fields: dict[str, str] = {}
        self._model = self._build_model(parameters)
        self._validator = Validator(self._model)
        is_plain = not self._validator.needs_bounds
        self._validate_small = (
            self._validator.begin(many=False).validate_python if is_plain else None
        )
        """Validates what is small, where nothing has to be bounded."""
        self.names: tuple[str, ...] = tuple(self._fields.values())
        self._known = frozenset(self.names)
        self.asked: tuple[AskedParameter, ...] = self._build_asked()
        self.takes_request = isinstance(self.provided, RequestParameter)
        """Whether the function takes the HTTP request, and so runs where a view does."""
        self.sends_messages = bool(self.asked) or isinstance(self.provided, ContextParameter)
        """Whether the client may get notifications or requests before the function ends."""
        self.depends_on_caller = self.sends_messages or self.takes_request or bool(self.filled)
        """Whether what the function returns may depend on who calls it."""
        self.schema: dict[str, Any] = self._build_schema()
        self.without_asking: Signature | None = None
        """The same where nobody can be asked, if that makes a difference."""
        if any(ask.or_argument for ask in self._asks.values()) and not without_asking:
            self.without_asking = Signature(function, without_asking=True)

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters without a default."""
        return tuple(self.schema.get("required", ()))

    @property
    def optional(self) -> frozenset[str]:
        """Names of the parameters with a default."""
        return self._known.difference(self.required)

    @property
    def is_costly(self) -> bool:
        """Whether even few arguments may take time worth mentioning to validate."""
        return self._validator.needs_bounds

    def bind(
        self,
        arguments: Mapping[str, Any],
        *,
        strict: bool = True,
        exchange: Exchange | None = None,
        questions: Questions | None = None,
    ) -> dict[str, Any]:
        """Return the keyword arguments for ``arguments``; raises :class:`ArgumentError`.

        The call of ``exchange`` gets a context or the request if the function takes one; a context
        with ``questions`` to ask by if the function may ask its client.
        """
        is_known = not strict or arguments.keys() <= self._known
        validate = self._validate_small
        try:
            if validate is None or (exchange is not None and exchange.request.is_large):
                model = self._validate(arguments, exchange)
            else:
                try:
                    model = validate(arguments)
                except ValidationError:
                    model = self._validate_leniently(arguments, self._validating(exchange))
        except ValidationError as error:
            raise self._error(arguments, strict, error) from None
        if not is_known:
            raise self._error(arguments, strict)
        # Not by attribute: reading a deprecated field warns.
        values = {name: model.__dict__[field] for field, name in self._fields.items()}
        if self._as_arguments:
            values = {name: value for name, value in values.items() if value is not UNSET}
        provided = self.provided
        if provided is not None and exchange is not None:
            values[provided.name] = provided.value(exchange, questions)
        return values

    def prepared(self, exchange: Exchange, questions: Questions | None) -> Callable[..., Any]:
        """Return the function as one that takes what :meth:`bind` returns.

        Before it is called, what the server fills in is there, and then the client is asked for
        what the signature says.
        """
        function = self.function
        if self.asked and questions is not None:
            function = with_answers(function, self.asked, exchange, questions)
        if self.filled:
            function = with_filled(function, self.filled, exchange)
        return function

    def annotation(self, name: str) -> Any:
        """Return the resolved annotation of the parameter ``name``, without ``Annotated``."""
        return bare(self._hints[name])

    def _validate(self, arguments: Mapping[str, Any], exchange: Exchange | None) -> BaseModel:
        validating = self._validating(exchange)
        try:
            return validating.validate_python(arguments)  # type: ignore[no-any-return]
        except ValidationError:
            return self._validate_leniently(arguments, validating)

    def _validate_leniently(
        self, arguments: Mapping[str, Any], validating: Validating
    ) -> BaseModel:
        return validate_leniently(arguments, self._validator, validating, self.optional)

    def _error(
        self, arguments: Mapping[str, Any], strict: bool, error: ValidationError | None = None
    ) -> ArgumentError:
        return argument_error(arguments, self.names, self.optional, strict=strict, error=error)

    def _validating(self, exchange: Exchange | None) -> Validating:
        if exchange is None:
            return self._validator.begin(many=False)
        request = exchange.request
        return self._validator.begin(many=request.many, large=request.is_large)

    def _build_model(self, parameters: list[inspect.Parameter]) -> type[BaseModel]:
        fields: dict[str, Any] = {}
        provided = self.provided
        keys = {each.name: each for each in self.filled if isinstance(each, LoadedParameter)}
        for parameter in parameters:
            if parameter.name in keys:
                parameter = self._key_parameter(parameter, keys[parameter.name])
            is_asked = parameter.name in self._asks and parameter.name not in self._as_arguments
            is_provided = provided is not None and parameter.name == provided.name
            if is_asked or is_provided or parameter.name in self._fillings:
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

    def _find_fillings(self, parameters: list[inspect.Parameter]) -> dict[str, Load | Provide]:
        found = {each.name: filling_of(self._hints.get(each.name)) for each in parameters}
        fillings = {name: filling for name, filling in found.items() if filling is not None}
        if twice := fillings.keys() & self._asks.keys():
            raise RegistrationError(
                f"{self.label}: {min(twice)!r} is filled in by the server, so the client is not "
                "asked for it. Take either Ask, or Load or Provide."
            )
        return fillings

    def _build_filled(self, parameters: list[inspect.Parameter]) -> tuple[FilledParameter, ...]:
        provided = self.provided
        names = [
            each.name
            for each in parameters
            if each.name not in (*self._asks, *self._fillings)
            and (provided is None or each.name != provided.name)
        ]
        filled: list[FilledParameter] = []
        for name, filling in self._fillings.items():
            built = build_filled(name, self._hints[name], filling, names, of=self.function)
            if isinstance(built, LoadedParameter) and built.argument in names:
                raise RegistrationError(
                    f"{self.label}: clients send the key of {name!r} as {built.argument!r}, which "
                    "is another parameter. Choose another name: `Load(argument=...)`."
                )
            filled.append(built)
            # What comes after it may depend on it.
            names.append(name)
        return tuple(filled)

    def _key_parameter(
        self, parameter: inspect.Parameter, loaded: LoadedParameter
    ) -> inspect.Parameter:
        """Return the argument by which clients say which object they mean."""
        described = self.docstring.parameters.get(parameter.name)
        text = described or loaded.description
        self._hints[loaded.argument] = Annotated[loaded.key_type, Field(description=text)]
        return parameter.replace(name=loaded.argument)

    def _find_arguments(self) -> dict[str, Ask]:
        """Return what is an argument, although it would be asked for if that were possible."""
        found = {name: ask for name, ask in self._asks.items() if ask.or_argument}
        for name in found:
            check_argument(name, self._hints[name], of=self.function)
        return found

    def _build_asked(self) -> tuple[AskedParameter, ...]:
        keys = {each.argument for each in self.filled if isinstance(each, LoadedParameter)}
        others = [name for name in self.names if name not in (*self._as_arguments, *keys)]
        others += self._fillings
        return tuple(
            build_asked(
                name,
                self._hints[name],
                ask,
                others,
                of=self.function,
                is_argument=name in self._as_arguments,
            )
            for name, ask in self._asks.items()
            if name not in self._as_arguments or ask.message is None
        )

    def _find_provided(self, parameters: list[inspect.Parameter]) -> ProvidedParameter | None:
        others = (*self._asks, *self._fillings)
        names = [each.name for each in parameters if each.name not in others]
        found = provided_parameter(self._hints, names)
        if found is None:
            return None
        names.remove(found.name)
        other = provided_parameter(self._hints, names)
        if other is not None and type(other) is type(found):
            what = "contexts" if isinstance(found, ContextParameter) else "requests"
            raise RegistrationError(f"{self.label} takes two {what}; one is enough.")
        if other is not None:
            raise RegistrationError(
                f"{self.label} takes a Context and an HttpRequest. Take the Context alone, which "
                "has the request as `ctx.request`; or the HttpRequest alone, to run where a view "
                "runs."
            )
        if self._asks and isinstance(found, RequestParameter):
            raise RegistrationError(
                f"{self.label} takes an HttpRequest and asks the client with Ask. Take a Context "
                "instead, which has the request as `ctx.request`."
            )
        return found

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
        ask = self._as_arguments.get(name)
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
        return schema

    def _refuse(self, error: Exception) -> RegistrationError:
        why = reason(error)
        file = " A file is `Annotated[UploadedFile, Upload()]`, with Upload from django_mcp."
        return RegistrationError(
            f"{self.label}: its parameters cannot be expressed as JSON Schema ({why}). "
            "Use types that pydantic knows: str, int, float, bool, datetime, Enum, Literal, lists, "
            f"dicts, dataclasses, TypedDicts or pydantic models.{file if 'File' in why else ''}"
        )


def _field_infos(annotation: Any) -> list[FieldInfo]:
    parts = get_args(annotation) if get_origin(annotation) is Annotated else ()
    return [part for part in parts if isinstance(part, FieldInfo)]


def _has_description(annotation: Any) -> bool:
    return any(extra.description for extra in _field_infos(annotation))
