"""What can be learnt from a function that a site registers, without calling it."""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Union, get_args, get_origin

from .errors import RegistrationError

Function = Callable[..., Any]

_SECTION: Final = re.compile(r"^(Args|Arguments|Parameters):\s*$", re.MULTILINE)
_NEXT_SECTION: Final = re.compile(r"^\S", re.MULTILINE)
_ENTRY: Final = re.compile(r"^(?P<indent>\s+)\*{0,2}(?P<name>\w+)\s*(?:\(.*?\))?:\s*(?P<text>.*)$")


def check(function: Any) -> None:
    """Refuse what is no function to be called once per request."""
    label = label_of(function)
    if inspect.isclass(function) or not callable(function):
        raise RegistrationError(
            f"{label} is not a function. Decorate a function, with options by name: "
            '`@mcp.tool(name="find_orders")`.'
        )
    if inspect.isasyncgenfunction(_annotated_function(function)):
        raise RegistrationError(
            f"{label} is an asynchronous generator. Collect what it yields and return a list."
        )


def name_of(function: Function) -> str:
    """Return what ``function`` is called."""
    function = _unbound(function)
    return str(getattr(function, "__name__", type(function).__name__))


def label_of(function: Function) -> str:
    """Return the name of ``function`` in messages."""
    function = _unbound(function)
    return str(getattr(function, "__qualname__", repr(function)))


def documentation_of(function: Function) -> str:
    """Return the docstring, dedented."""
    return inspect.getdoc(_unbound(function)) or inspect.getdoc(_annotated_function(function)) or ""


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring, read."""

    text: str
    parameters: dict[str, str] = field(default_factory=dict)


def parse_docstring(docstring: str) -> Docstring:
    """Split off an ``Args:`` section as Google's style guide has it; the rest is the description.

    ``docstring`` is dedented, as :func:`inspect.getdoc` returns it.
    """
    found = _SECTION.search(docstring)
    if found is None:
        return Docstring(docstring.strip())
    after = _NEXT_SECTION.search(docstring, found.end())
    end = after.start() if after else len(docstring)
    rest = docstring[: found.start()].rstrip() + "\n\n" + docstring[end:].strip()
    return Docstring(rest.strip(), _entries(docstring[found.end() : end]))


def is_async(function: Function) -> bool:
    """Return whether calling ``function`` makes a coroutine."""
    plain = isinstance(function, types.FunctionType)
    return _is_async_function(function) if plain else _is_async(function)


def _is_async(function: Function) -> bool:
    function = _unbound(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method is inspected, not tested
    )


# Unlike other callables, functions are hashable. A server's AUTH is looked at with every request.
_is_async_function = functools.lru_cache(maxsize=1024)(_is_async)


def parameters_of(function: Function) -> list[inspect.Parameter]:
    """Return the parameters that may be given by name, each of which has a schema."""
    label = label_of(function)
    # What a partial has fixed is not for the client to choose.
    fixed = function.keywords if isinstance(function, functools.partial) else {}
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError as error:
        raise RegistrationError(f"{label}: {error}. Wrap it in a function of yours.") from error
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise RegistrationError(
                f"{label}: *{parameter.name} has no JSON Schema. Name every parameter."
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise RegistrationError(
                f"{label}: {parameter.name!r} is positional-only, but arguments come by name. "
                "Remove the `/` from the signature."
            )
    return [parameter for parameter in parameters if parameter.name not in fixed]


def hints_of(function: Function) -> dict[str, Any]:
    """Return the annotations, resolved."""
    try:
        return typing.get_type_hints(_annotated_function(function), include_extras=True)
    except NameError as error:
        raise RegistrationError(
            f"{label_of(function)}: the annotation names {error.name!r}, which its module does not "
            "have at run time. Import it outside `if TYPE_CHECKING:`, or define it above the "
            "function, at module level."
        ) from error
    except (AttributeError, SyntaxError, TypeError) as error:
        raise RegistrationError(
            f"{label_of(function)}: an annotation cannot be resolved ({error})."
        ) from error


def bare(annotation: Any) -> Any:
    """Return ``annotation`` without ``Annotated``, aliases and new types around it."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation


def is_kind(annotation: Any, kinds: tuple[type, ...]) -> bool:
    """Return whether values so annotated are, or may be, of one of ``kinds``."""
    annotation = bare(annotation)
    if get_origin(annotation) in (Union, types.UnionType):
        return any(is_kind(part, kinds) for part in get_args(annotation))
    return inspect.isclass(annotation) and issubclass(annotation, kinds)


def _entries(section: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    indent, name = "", ""
    for line in section.splitlines():
        entry = _ENTRY.match(line)
        if entry and (not indent or entry["indent"] == indent):
            indent, name = entry["indent"], entry["name"]
            entries[name] = entry["text"].strip()
        elif name and line.strip():
            entries[name] = f"{entries[name]} {line.strip()}".strip()
    return entries


def _unbound(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _annotated_function(function: Any) -> Any:
    # The function that has the annotations: of an object that can be called, its method.
    function = _unbound(function)
    if inspect.isroutine(function) or hasattr(function, "__wrapped__"):
        return function
    return type(function).__call__
