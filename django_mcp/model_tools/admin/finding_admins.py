"""The ``ModelAdmin`` that a site means, among those that its admin sites have."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import ModelAdmin, autodiscover
from django.contrib.admin.sites import AdminSite, all_sites
from django.db.models import Model

from ...server.errors import RegistrationError


def find_admin(given: Any, site: AdminSite | None = None) -> ModelAdmin[Any]:
    """Return the registered admin that ``given`` is, or is the class or the model of.

    Raises :class:`RegistrationError` if there is none, or are several.
    """
    if isinstance(given, ModelAdmin):
        return given
    if not isinstance(given, type) or not issubclass(given, (ModelAdmin, Model)):
        raise RegistrationError(
            f"mcp.admin() takes a ModelAdmin or a model that is registered with an admin site, as "
            f"in mcp.admin(TicketAdmin); not {given!r}."
        )
    # This may be asked before the admin has looked for what the apps have.
    found = _registered(given, site)
    if not found:
        autodiscover()
        found = _registered(given, site)
    if not found:
        raise RegistrationError(
            f"{given.__name__} is registered with no admin site"
            f"{'' if site is None else f' called {site.name!r}'}. Register it, by "
            "@admin.register(...) or site.register(...), before mcp.admin() names it."
        )
    if len(found) > 1:
        names = ", ".join(f"{each.admin_site.name}: {each.opts.label}" for each in found)
        raise RegistrationError(
            f"{given.__name__} is registered several times ({names}). Say which is meant: "
            "mcp.admin(site.get_model_admin(Ticket))."
        )
    return found[0]


def _registered(given: type, site: AdminSite | None) -> list[ModelAdmin[Any]]:
    sites = list(all_sites) if site is None else [site]
    admins = [each for one in sites for each in one._registry.values()]
    if issubclass(given, ModelAdmin):
        return [each for each in admins if type(each) is given]
    return [each for each in admins if each.model is given]
