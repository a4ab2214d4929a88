"""Parameters that the server fills in: an object for the key that a client sends, or something else
of which clients see nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin
from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib.auth import get_permission_codename
from django.core.exceptions import FieldDoesNotExist, PermissionDenied
from django.db import models
from django.http import Http404
from pydantic import Field

from .context import provided_parameter
from .errors import RegistrationError
from .exchange import Exchange
from .functions import bare, is_async, label_of
from .parameter_functions import ParameterFunction, build_parameter_function

M = TypeVar("M", bound=models.Model)


@dataclass(frozen=True, slots=True)
class Load:
    """Annotate a parameter that takes an instance of a model with it, and clients send its key.

    Of ``ticket: Annotated[Ticket, Load(...)]`` they see the argument ``ticket_id``, or whatever
    ``argument`` says. ``queryset`` has those that the caller may have: a manager, a queryset, or a
    function that returns one. The function takes what it needs of the other arguments, by their
    names, and a ``Context`` or an ``HttpRequest``. ``permission`` is what the caller needs, for the
    model or for this object, such as ``"support.change_ticket"``. One of the two must be given.
    ``field`` is a unique field of the model by which it is found, other than its primary key.
    """

    queryset: Any = None
    _: KW_ONLY
    permission: str | None = None
    field: str = "pk"
    argument: str | None = None


@dataclass(frozen=True, slots=True)
class Provide:
    """Annotate a parameter with it to have it filled with what ``function`` returns.

    Clients do not see the parameter. The function takes what it needs of the other arguments, by
    their names, and a ``Context`` or an ``HttpRequest``.
    """

    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedParameter:
    """A parameter that takes the object of which the client has sent the key."""

    name: str
    argument: str
    key_type: Any
    description: str
    """What clients read of the argument, where the site says nothing."""
    model: type[models.Model]
    field: str
    source: ParameterFunction
    """Returns the queryset in which it is."""
    permission: str | None

    def fill(self, values: Mapping[str, Any], exchange: Exchange) -> models.Model | None:
        """Return the object; raises :class:`Http404` or :class:`PermissionDenied`."""
        key = values[self.argument]
        if key is None:
            return None
        return self._find(self.source.value(values, exchange), key, exchange.principal.user)

    async def afill(self, values: Mapping[str, Any], exchange: Exchange) -> models.Model | None:
        """Do as :meth:`fill`, in asynchronous code."""
        key = values[self.argument]
        if key is None:
            return None
        queryset = await self.source.avalue(values, exchange)
        return await sync_to_async(self._find)(queryset, key, exchange.principal.user)

    def _find(self, queryset: Any, key: Any, user: Any) -> models.Model:
        if isinstance(key, str) and "\x00" in key:
            raise self._not_found()  # which PostgreSQL would not compare
        # Not get(): joins of the site's may have the same row several times.
        found: models.Model | None = queryset.filter(**{self.field: key}).first()
        if found is None:
            raise self._not_found()
        if self.permission is not None and not _is_allowed(user, self.permission, found):
            # That there is such an object is told only to those who may see it.
            if _is_allowed(user, _view_permission(self.model), found):
                raise PermissionDenied
            raise self._not_found()
        return found

    def _not_found(self) -> Http404:
        # As Django says it of what is not there.
        return Http404(f"No {self.model._meta.object_name} matches the given query.")


@dataclass(frozen=True, slots=True)
class ProvidedValue:
    """A parameter that takes what a function of the site returns."""

    name: str
    source: ParameterFunction

    def fill(self, values: Mapping[str, Any], exchange: Exchange) -> Any:
        """Return the value."""
        return self.source.value(values, exchange)

    async def afill(self, values: Mapping[str, Any], exchange: Exchange) -> Any:
        """Do as :meth:`fill`, in asynchronous code."""
        return await self.source.avalue(values, exchange)


FilledParameter = LoadedParameter | ProvidedValue


def filling_of(annotation: Any) -> Load | Provide | None:
    """Return the :class:`Load` or :class:`Provide` in an annotation, if any."""
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    if Load in extras or Provide in extras:
        raise RegistrationError(
            "Load and Provide are called: `Load(permission=...)`, `Provide(current_team)`."
        )
    return next((extra for extra in extras if isinstance(extra, (Load, Provide))), None)


def build_filled(
    name: str,
    annotation: Any,
    filling: Load | Provide,
    others: Sequence[str],
    *,
    of: Callable[..., Any],
) -> FilledParameter:
    """Return the parameter ``name`` of the function ``of``, which has ``others`` beside it."""
    if isinstance(filling, Load):
        return _build_loaded(name, annotation, filling, others, of=of)
    return ProvidedValue(name, _source(filling.function, others, of=of))


def with_filled(
    function: Callable[..., Any], filled: Sequence[FilledParameter], exchange: Exchange
) -> Callable[..., Any]:
    """Return ``function`` as one that takes what the client has sent."""

    def complete(**values: Any) -> Any:
        for each in filled:
            values[each.name] = each.fill(values, exchange)
        return function(**_without_keys(values, filled))

    async def acomplete(**values: Any) -> Any:
        for each in filled:
            values[each.name] = await each.afill(values, exchange)
        return await function(**_without_keys(values, filled))

    return acomplete if is_async(function) else complete


def _without_keys(values: dict[str, Any], filled: Sequence[FilledParameter]) -> dict[str, Any]:
    for each in filled:
        if isinstance(each, LoadedParameter):
            del values[each.argument]
    return values


def _build_loaded(
    name: str,
    annotation: Any,
    load: Load,
    others: Sequence[str],
    *,
    of: Callable[..., Any],
) -> LoadedParameter:
    label = f"{label_of(of)}: {name}"
    model, is_optional = _model_of(annotation, label)
    if load.queryset is None and load.permission is None:
        raise RegistrationError(
            f"{label}: Load needs permission= or a queryset, or any caller could name any "
            f"{model._meta.object_name}. Where all may have all, say so: "
            f"`Load({model._meta.object_name}.objects)`."
        )
    field = _key_field(model, load.field, label)
    key_type = _key_type(field, label)
    return LoadedParameter(
        name=name,
        argument=load.argument or f"{name}_id",
        key_type=key_type | None if is_optional else key_type,
        description=f"The {field.verbose_name} of the {model._meta.verbose_name}.",
        model=model,
        field=load.field,
        source=_queryset_source(load.queryset, model, others, of=of),
        permission=load.permission,
    )


def _queryset_source(
    given: Any, model: type[models.Model], others: Sequence[str], *, of: Callable[..., Any]
) -> ParameterFunction:
    if given is None:
        given = model._default_manager
    if isinstance(given, (models.Manager, models.QuerySet)):
        return ParameterFunction(given.all, False, (), None)
    return _source(given, others, of=of)


def _source(function: Any, others: Sequence[str], *, of: Callable[..., Any]) -> ParameterFunction:
    return build_parameter_function(
        function,
        others,
        of=of,
        find_provided=provided_parameter,
        may_also="a Context or an HttpRequest",
    )


def _model_of(annotation: Any, label: str) -> tuple[type[models.Model], bool]:
    """Return the model of an annotation, and whether there may be no object."""
    annotation = bare(annotation)
    parts = (annotation,)
    if get_origin(annotation) in (Union, UnionType):
        parts = get_args(annotation)
    kinds = [bare(part) for part in parts if part is not NoneType]
    if len(kinds) != 1 or not (isinstance(kinds[0], type) and issubclass(kinds[0], models.Model)):
        raise RegistrationError(
            f"{label}: Load is for a parameter that takes an instance of a model, or None: "
            "`Annotated[Ticket, Load(...)]`."
        )
    return kinds[0], len(parts) > 1


def _key_field(model: type[models.Model], name: str, label: str) -> Any:
    try:
        field: Any = model._meta.pk if name == "pk" else model._meta.get_field(name)
    except FieldDoesNotExist as error:
        raise RegistrationError(f"{label}: {error}.") from None
    if not getattr(field, "unique", False):
        raise RegistrationError(
            f"{label}: {name!r} is no unique field, so it may find several. Take the primary key, "
            "or make the field unique."
        )
    return field


def _key_type(field: Any, label: str) -> Any:
    """Return the type of what clients send."""
    while field.remote_field is not None:
        field = field.target_field
    if isinstance(field, models.UUIDField):
        return UUID
    if isinstance(field, models.IntegerField):
        return int
    if isinstance(field, models.CharField):
        return Annotated[str, Field(max_length=field.max_length)]
    raise RegistrationError(
        f"{label}: Load finds objects by integers, UUIDs and text; {field.name!r} is a "
        f"{type(field).__name__}."
    )


def _is_allowed(user: Any, permission: str, found: models.Model) -> bool:
    # Django's own backend knows permissions of models only, others those of objects only.
    return bool(user.has_perm(permission) or user.has_perm(permission, found))


def _view_permission(model: type[models.Model]) -> str:
    options = model._meta
    return f"{options.app_label}.{get_permission_codename('view', options)}"
