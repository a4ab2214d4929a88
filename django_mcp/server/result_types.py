"""Return annotations that say how a result is made of what a function returns.

They do so by a class, as in ``-> Page[TicketOut]``, or by an object beside the type of the value or
of each of a list, as in ``-> Annotated[Any, Fields(...)]``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Protocol, Union, get_args, get_origin, runtime_checkable

from django.db.models import QuerySet

from .functions import bare, documentation_of, hints_of, label_of, name_of

Function = Callable[..., Any]


@runtime_checkable
class ResultType(Protocol):
    """Something in a return annotation that has its word in what a tool does."""

    def tool_function(self, function: Function, annotation: Any) -> Function:
        """Return the function that is the tool in place of ``function``, which is so annotated."""


def tool_function(function: Function) -> Function:
    """Return what is called for a tool, where its return annotation has a word in that."""
    if inspect.isclass(function) or not callable(function):
        return function  # which is refused elsewhere
    annotation = hints_of(function).get("return")
    found = next((each for each in _parts(annotation) if isinstance(each, ResultType)), None)
    return function if found is None else found.tool_function(function, annotation)


def take_place_of(
    wrapper: Any,
    function: Function,
    parameters: Sequence[inspect.Parameter],
    *,
    returns: Any = inspect.Parameter.empty,
) -> None:
    """Have ``wrapper`` be called, described and documented as ``function``.

    It takes ``parameters``, and returns what ``function`` does unless ``returns`` says otherwise.
    """
    hints = hints_of(function)
    returns = hints.get("return", returns) if returns is inspect.Parameter.empty else returns
    kind = inspect.Parameter.KEYWORD_ONLY
    named = [
        each.replace(kind=kind, annotation=hints.get(each.name, each.annotation))
        for each in parameters
    ]
    wrapper.__signature__ = inspect.Signature(named)
    wrapper.__annotations__ = {
        each.name: each.annotation for each in named if each.annotation is not each.empty
    }
    if returns is not inspect.Parameter.empty:
        wrapper.__annotations__["return"] = returns
    wrapper.__name__, wrapper.__qualname__ = name_of(function), label_of(function)
    wrapper.__doc__ = documentation_of(function)
    wrapper.__module__ = getattr(function, "__module__", wrapper.__module__)


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield the class of an annotation, and what stands beside it, or beside the class of items."""
    yield from extras_of(annotation)
    kind = bare(annotation)
    yield get_origin(kind) or kind
    items = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        items = tuple(each for each in items if each is not NoneType)
    elif not is_list(kind):
        return
    if len(items) == 1:
        yield from extras_of(items[0])


def is_list(annotation: Any) -> bool:
    """Return whether values of a type are lists, or others of any length and with one item each."""
    kind = get_origin(annotation) or annotation
    is_some = isinstance(kind, type) and issubclass(kind, (Iterable, QuerySet))
    return is_some and not issubclass(kind, (Mapping, str, tuple))


def extras_of(annotation: Any) -> Sequence[Any]:
    """Return what stands beside a type in its annotation."""
    while type(annotation).__name__ == "TypeAliasType":
        annotation = annotation.__value__
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
