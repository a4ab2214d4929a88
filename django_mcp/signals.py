"""What the receivers of Django's signals have in common."""

from __future__ import annotations

from django.apps import apps
from django.db.models import Model


def senders(model: type[Model]) -> list[type[Model]]:
    """Return the model and what inherits from it: signals name the class that was saved."""
    concrete = model._meta.concrete_model or model
    related = [each for each in apps.get_models() if issubclass(each, concrete)]
    return list(dict.fromkeys((model, *related)))
