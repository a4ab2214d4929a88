"""Toolsets: tools that belong together, and are written as methods of one class."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Annotated, Any, ClassVar, TypeVar, overload

from .checked_options import check_several
from .errors import RegistrationError
from .filled_parameters import Provide
from .functions import is_async
from .primitives import Permission, is_permitted

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = "_mcp_tool_options"


class Toolset:
    """Tools that share something: derive from it, and register the class with ``mcp.toolset``.

    Methods that are decorated with :func:`django_mcp.tool` are tools. For each call there is an
    instance of its own. If the class has a method ``setup``, that is called first; it takes what it
    needs of the arguments, by their names, and a ``Context`` or an ``HttpRequest``.
    """

    name: ClassVar[str] = ""
    """What it is called; by default as the class, in small letters. The docstring describes it."""
    prefix: ClassVar[str] = ""
    """Begins the names of its tools."""
    permission: ClassVar[Permission | None] = None
    """What all of its tools need, beside a permission of their own."""
    scopes: ClassVar[Sequence[str]] = ()
    """The scopes that all of its tools need, beside their own."""
    tags: ClassVar[Collection[str]] = ()
    """Tags that all of its tools have, beside their own."""


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(**options: Any) -> Callable[[F], F]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a method of a :class:`Toolset` as a tool, bare or with options of ``mcp.tool``."""

    def mark(function: F) -> F:
        setattr(function, _OPTIONS, options)
        return function

    return mark if function is None else mark(function)


def name_of_toolset(kind: type[Toolset]) -> str:
    """Return what a class of tools is called."""
    return kind.name or kind.__name__.lower()


def description_of(kind: type[Toolset]) -> str:
    """Return the first line of the docstring of a class of tools, or nothing."""
    # A class that says nothing is not described by its base.
    return inspect.cleandoc(kind.__dict__.get("__doc__") or "").partition("\n")[0]


def tools_of(kind: Any) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
    """Yield the tools of a class, as functions, with their options.

    Raises :class:`RegistrationError` for a class that has none.
    """
    if not (inspect.isclass(kind) and issubclass(kind, Toolset)):
        raise RegistrationError(
            f"{kind!r} is no toolset. Derive the class from django_mcp.Toolset, and mark its tools "
            "with @tool."
        )
    marked = [each for each in _functions(kind).values() if hasattr(each, _OPTIONS)]
    if not marked:
        raise RegistrationError(
            f"{kind.__qualname__} has no tools. Mark its methods with @tool, from django_mcp."
        )
    instance: Any = Annotated[kind, Provide(_maker(kind))]
    for method in marked:
        yield _with_self(method, instance), _shared(kind, method)


def _functions(kind: type[Toolset]) -> dict[str, Any]:
    """Return the functions of a class and its bases, in the order in which they are written."""
    found: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        # What a derived class overrides is a tool only if that says so, and has its place.
        found.update({name: value for name, value in vars(each).items() if _is_method(value)})
    return found


def _is_method(value: Any) -> bool:
    return inspect.isfunction(value)


def _shared(kind: type[Toolset], method: Any) -> dict[str, Any]:
    """Return the options of a method, with what its class says of all."""
    own: Mapping[str, Any] = getattr(method, _OPTIONS)
    for name in ("scopes", "tags"):
        check_several(getattr(kind, name), name, kind.__qualname__)
        check_several(own.get(name), name, method.__qualname__)
    return {
        **own,
        "name": kind.prefix + (own.get("name") or method.__name__),
        "permission": _both(kind.permission, own.get("permission")),
        "scopes": [*kind.scopes, *own.get("scopes", ())],
        "tags": [*kind.tags, *own.get("tags", ())],
        "toolset": name_of_toolset(kind),
    }


def _both(first: Permission | None, second: Permission | None) -> Permission | None:
    """Return the permission of those who have both."""
    if first is None or second is None or first == second:
        return second if first is None else first

    def has_both(user: Any) -> bool:
        return is_permitted(user, first) and is_permitted(user, second)

    return has_both


def _maker(kind: type[Toolset]) -> Callable[..., Toolset]:
    """Return what makes an instance for a call, and takes what ``setup`` takes."""
    setup: Any = getattr(kind, "setup", None)
    if setup is None:
        return lambda: kind()
    if is_async(setup):
        raise RegistrationError(
            f"{setup.__qualname__} is asynchronous. Make it synchronous: it may use the ORM, also "
            "for tools that are asynchronous."
        )

    @functools.wraps(setup)
    def make(**values: Any) -> Toolset:
        instance = kind()
        setup(instance, **values)
        return instance

    signature = inspect.signature(setup)
    _, *parameters = signature.parameters.values()
    make.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return make


def _with_self(method: Any, instance: Any) -> Callable[..., Any]:
    """Return a method as a function of which the server fills in ``self``."""
    function = FunctionType(
        method.__code__,
        method.__globals__,
        method.__name__,
        method.__defaults__,
        method.__closure__,
    )
    # What a decorator has wrapped is found by `__wrapped__`, which is among these.
    function.__dict__.update(vars(method))
    function.__kwdefaults__ = method.__kwdefaults__
    function.__doc__, function.__module__ = method.__doc__, method.__module__
    function.__qualname__ = method.__qualname__
    own = next(iter(inspect.signature(method).parameters))
    function.__annotations__ = {**method.__annotations__, own: instance}
    return function
