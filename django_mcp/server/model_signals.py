"""Models whose instances are resources: subscribers are notified when one changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Field, Model
from django.db.models.signals import post_delete, post_save

from ..signals import senders
from .errors import RegistrationError
from .primitives import Resource

Notify = Callable[..., object]

_deferred: list[tuple[Resource, Notify, Notify]] = []


def connect_signals(resource: Resource, updated: Notify, listed: Notify) -> None:
    """Notify from now on when an instance of the model of ``resource`` is saved or deleted.

    ``updated`` gets the URI of the one, ``listed`` is for what comes and goes; both take ``using``.
    """
    if apps.models_ready:
        _connect(resource, updated, listed)
    else:
        _deferred.append((resource, updated, listed))


def connect_deferred() -> None:
    """Connect what was registered before all models were loaded."""
    deferred, _deferred[:] = _deferred[:], []
    for each in deferred:
        _connect(*each)


def _connect(resource: Resource, updated: Notify, listed: Notify) -> None:
    """Connect the signals of a model.

    To each model by itself: a receiver for all senders would slow down every deletion of the site,
    which could not be made in one statement any more.
    """
    model = _checked(resource)
    attributes = {name: _attribute(model, name, resource) for name in resource.template.variables}

    def saved(instance: Model, using: str, created: bool, **rest: Any) -> None:
        values = {name: getattr(instance, each, None) for name, each in attributes.items()}
        updated(resource.template.expand(values), using=using)
        if created and resource.listing is not None:
            listed(using=using)

    def deleted(instance: Model, using: str, **rest: Any) -> None:
        # Whatever comes or goes changes what the function lists.
        saved(instance, using, created=True)

    for sender in senders(model):
        post_save.connect(saved, sender=sender, weak=False, dispatch_uid=id(resource))
        post_delete.connect(deleted, sender=sender, weak=False, dispatch_uid=id(resource))


def _checked(resource: Resource) -> type[Model]:
    model = resource.model
    if isinstance(model, type) and issubclass(model, Model):
        return model
    raise RegistrationError(
        f"{resource.signature.label}: model= takes a model class, not {model!r}."
    )


def _attribute(model: type[Model], variable: str, resource: Resource) -> str:
    """Return the attribute of an instance that has the value of a variable."""
    try:
        field = model._meta.get_field(variable)
    except FieldDoesNotExist:
        if variable == "pk" or hasattr(model, variable):
            return variable
        raise RegistrationError(
            f"{resource.signature.label}: {model.__name__} has no attribute {variable!r}, so that "
            f"{resource.key!r} cannot be made from an instance. Rename the variable, add a "
            "property, or leave model= out and call notify_resource_updated()."
        ) from None
    # Of a foreign key the value, not the instance, which would be fetched.
    return field.attname if isinstance(field, Field) else variable
