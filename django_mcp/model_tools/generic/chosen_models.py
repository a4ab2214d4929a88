"""Which models of an admin site are meant: by patterns, and never by accident those of logins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from django.apps import apps
from django.db.models import Model
from django.utils.module_loading import autodiscover_modules

from ...server.errors import RegistrationError
from ..fields.secret_names import looks_secret

ALL: Final = "*"


def registered_models(site: Any) -> list[type[Model]]:
    """Return the models of an admin site, after every app's ``admin.py`` has been imported.

    It may be asked before the admin itself is ready, depending on the order of the apps.
    """
    from django.contrib.admin import site as default_site  # noqa: PLC0415
    from django.contrib.admin.apps import AdminConfig  # noqa: PLC0415

    if any(isinstance(each, AdminConfig) for each in apps.get_app_configs()):
        autodiscover_modules("admin", register_to=default_site)
    return [
        model for model in apps.get_models(include_auto_created=True) if site.is_registered(model)
    ]


def choose(
    registered: Sequence[type[Model]], models: Sequence[str], exclude: Sequence[str] = ()
) -> list[type[Model]]:
    """Return which of ``registered`` models the patterns mean, without those to ``exclude``.

    A pattern is ``"app.Model"``, ``"app.*"`` or ``"*"``. One with a star leaves out what holds
    sessions or credentials. Raises :class:`RegistrationError` for one that means nothing.
    """
    if isinstance(models, str) or isinstance(exclude, str) or not models:
        raise RegistrationError(
            'mcp.admin_site: models= and exclude= take several, as in models=["support.*"].'
        )
    chosen = [model for pattern in models for model in _matching(pattern, registered, "models=")]
    excluded = [each for pattern in exclude for each in _named(pattern, chosen, "exclude=")]
    left = [model for model in dict.fromkeys(chosen) if model not in excluded]
    if not left:
        raise RegistrationError("mcp.admin_site: exclude= leaves none of the models.")
    return left


def allowed_of(
    model: type[Model],
    registered: Sequence[type[Model]],
    given: Sequence[str] | Mapping[str, Sequence[str]],
    option: str,
) -> list[str]:
    """Return what an option allows of a model: the same of all, or what is said by patterns."""
    if isinstance(given, str):
        raise RegistrationError(f"mcp.admin_site: {option} takes several, as in [{given!r}].")
    if not isinstance(given, Mapping):
        return [*given]
    found = [
        each
        for pattern, allowed in given.items()
        if model in _named(pattern, registered, option)
        for each in allowed
    ]
    return [*dict.fromkeys(found)]


def holds_credentials(model: type[Model]) -> bool:
    """Return whether a model's name says that whoever reads its rows could be somebody else."""
    kinds = [kind.__name__ for kind in model.__mro__]
    return looks_secret(model.__name__) or any("session" in kind.lower() for kind in kinds)


def _matching(
    pattern: str, registered: Sequence[type[Model]], option: str
) -> Iterator[type[Model]]:
    found = _named(pattern, registered, option)
    if ALL not in pattern:
        yield from found
        return
    harmless = [model for model in found if not holds_credentials(model)]
    if not harmless:
        labels = ", ".join(model._meta.label for model in found)
        raise RegistrationError(
            f"mcp.admin_site: {pattern!r} means {labels} alone, which by name hold sessions or "
            "credentials. If models may read them, name each in full."
        )
    yield from harmless


def _named(pattern: str, models: Sequence[type[Model]], option: str) -> list[type[Model]]:
    """Return the models that a pattern means, of which there is one at least."""
    app, _, name = pattern.lower().partition(".")
    if pattern == ALL:
        return [*models]
    found = [
        model
        for model in models
        if model._meta.app_label.lower() == app and name in (ALL, model._meta.model_name)
    ]
    if not found:
        labels = ", ".join(sorted(model._meta.label for model in models)) or "none"
        raise RegistrationError(
            f"mcp.admin_site: {option} has {pattern!r}, which is no model here. It takes "
            f'"app.Model" or "app.*"; there are {labels}.'
        )
    return found
