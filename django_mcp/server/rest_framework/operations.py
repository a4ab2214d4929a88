"""What views of REST framework do: actions of viewsets, and HTTP methods of all others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rest_framework import generics, mixins, serializers
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSetMixin

from ..errors import RegistrationError

METHODS: Final = {
    "list": "get",
    "retrieve": "get",
    "create": "post",
    "update": "patch",
    "partial_update": "patch",
    "destroy": "delete",
}
"""The HTTP method of each action that REST framework itself has."""
_DETAIL: Final = frozenset(("retrieve", "update", "partial_update", "destroy"))
_ACTIONS: Final = {
    "post": "create",
    "put": "update",
    "patch": "partial_update",
    "delete": "destroy",
}
"""What a method of a generic view does."""
_ALL_METHODS: Final = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that a view does, and its tool."""

    kind: type[Any]
    """The class of the view; of a function, that which ``@api_view`` has made."""
    called: Callable[..., Any] | None = None
    """The view itself, where it is a function."""
    action: str
    """The action of a viewset or of a generic view, or the HTTP method of another view."""
    method: str
    is_detail: bool
    given: Mapping[str, Any] = field(default_factory=dict)
    """What the view is made with."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """What the URL would say beside the key, such as a version; a class stands for an argument."""
    is_described: bool = False
    """Whether the site says what the arguments are: ``serializer``, or nothing."""
    serializer: type[serializers.BaseSerializer[Any]] | None = None

    @property
    def is_viewset(self) -> bool:
        """Whether the view has actions."""
        return issubclass(self.kind, ViewSetMixin)

    @property
    def is_plain(self) -> bool:
        """Whether the view knows of no objects: what it does stands in its methods alone."""
        return not (self.is_viewset or issubclass(self.kind, generics.GenericAPIView))

    @property
    def fixed(self) -> dict[str, Any]:
        """What the URL always says."""
        return {name: value for name, value in self.kwargs.items() if not is_type(value)}

    @property
    def function(self) -> Callable[..., Any] | None:
        """The site's function, or REST framework's, that does it, if there is one."""
        found = getattr(self.kind, self.action, None) or getattr(self.kind, self.method, None)
        if self.called is None or found is None:
            return found
        # @api_view keeps what it decorates in a closure, and nowhere else.
        own: Callable[..., Any] | None = inspect.getclosurevars(found).nonlocals.get("func")
        return own or found

    def view(self) -> Any:
        """Return an instance of the view, as it is when it is called."""
        view = self.kind(**self.given)
        view.action, view.kwargs = self.action, self.fixed
        view.action_map = {self.method: self.action}  # as `as_view` would set it
        view.request = view.format_kwarg = None
        return view

    def callable(self) -> Callable[..., Any]:
        """Return the view as URLs have it."""
        if self.called is not None:
            return self.called
        if not self.is_viewset:
            return self.kind.as_view(**self.given)  # type: ignore[no-any-return]
        actions = {self.method: self.action}
        return self.kind.as_view(actions, **self.given)  # type: ignore[no-any-return]


def operations(
    view: Any,
    actions: Sequence[str],
    kwargs: Mapping[str, Any],
    described_by: Mapping[str, Any],
) -> Iterator[Operation]:
    """Yield what is asked for of a view. Raises :class:`RegistrationError`."""
    is_class = inspect.isclass(view)
    kind = view if is_class else getattr(view, "cls", None)
    if not (inspect.isclass(kind) and issubclass(kind, APIView)):
        raise RegistrationError(
            f"{view!r} is no view of REST framework: neither a class of one, nor a function with "
            "@api_view. Write a function that calls it, and return its response."
        )
    if not is_class and issubclass(kind, ViewSetMixin):
        raise RegistrationError(
            f"{kind.__qualname__} is taken as a class: mcp.viewset({kind.__qualname__}, ...), "
            "without as_view()."
        )
    if unknown := [each for each in described_by if each not in actions]:
        raise RegistrationError(
            f"serializers= describes {unknown[0]!r} of {kind.__qualname__}, which is none of the "
            f"actions that are offered: {', '.join(actions)}."
        )
    given = {} if is_class else {"called": view, "given": dict(getattr(view, "initkwargs", {}))}
    for action in actions:
        make = _of_viewset if issubclass(kind, ViewSetMixin) else _of_view
        yield make(
            kind,
            action.lower(),
            kwargs=kwargs,
            is_described=action in described_by,
            serializer=described_by.get(action),
            **given,
        )


def is_type(value: Any) -> bool:
    """Return whether what stands for a part of a URL is its type, and no fixed value."""
    return isinstance(value, type)


def model_of(kind: Any) -> Any:
    """Return the model of a view's objects; ``None`` where it says none."""
    queryset = getattr(kind, "queryset", None)
    if queryset is not None:
        return queryset.model
    meta = getattr(getattr(kind, "serializer_class", None), "Meta", None)
    return getattr(meta, "model", None)


def _of_viewset(kind: Any, action: str, **rest: Any) -> Operation:
    function = getattr(kind, action, None)
    if action == "update" and hasattr(kind, "partial_update"):
        action = "partial_update"
    if function is None:
        extra = [each.__name__ for each in kind.get_extra_actions()]
        known = [each for each in METHODS if hasattr(kind, each) and each != "partial_update"]
        raise RegistrationError(
            f"{kind.__qualname__} has no action {action!r}. It has: {', '.join([*known, *extra])}."
        )
    if (mapping := getattr(function, "mapping", None)) is None:
        is_detail = action in _DETAIL
        return Operation(
            kind=kind, action=action, method=METHODS[action], is_detail=is_detail, **rest
        )
    method, name = next(iter(mapping.items()))
    return Operation(
        kind=kind,
        action=name,
        method=method,
        is_detail=function.detail,
        given=dict(function.kwargs),
        **rest,
    )


def _of_view(kind: Any, method: str, **rest: Any) -> Operation:
    known = [each for each in _ALL_METHODS if each in kind.http_method_names]
    known = [each for each in known if hasattr(kind, each)]
    if method == "put" and "patch" in known:
        method = "patch"  # what is not given stays as it is
    if method not in known:
        raise RegistrationError(
            f"{kind.__qualname__} has no method {method!r}. It has: {', '.join(known)}."
        )
    if not issubclass(kind, generics.GenericAPIView):
        return Operation(kind=kind, action=method, method=method, is_detail=False, **rest)
    of_one = (mixins.RetrieveModelMixin, mixins.UpdateModelMixin, mixins.DestroyModelMixin)
    action = _ACTIONS.get(method)
    if action is None:
        action = "retrieve" if issubclass(kind, mixins.RetrieveModelMixin) else "list"
    return Operation(
        kind=kind, action=action, method=method, is_detail=issubclass(kind, of_one), **rest
    )
