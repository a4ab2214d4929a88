"""``mcp.admin_site(admin.site, models=["support.*"])``: five tools for many models of a site."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from django.contrib.admin import AdminSite
from django.db.models import Model

from ...server.errors import RegistrationError
from ...server.primitives import Permission
from ...server.registry import MCPServer
from ..admin.admin_model import AdminModel
from ..admin.admin_requests import described, describing_request
from .chosen_models import allowed_of, choose, registered_models
from .generic_tools import GenericTools, Offered
from .offered_models import OfferedModels

Allowed = Sequence[str] | Mapping[str, Sequence[str]]
"""What is allowed of all models, or of those that patterns mean."""


def tools_of(
    site: Any,
    server: MCPServer,
    *,
    models: Sequence[str],
    exclude: Sequence[str],
    write: Allowed,
    actions: Allowed,
    confirm: bool | Collection[str],
    allow_secret: Collection[str],
    prefix: str,
    permission: Permission | None,
    scopes: Sequence[str],
    write_scopes: Sequence[str],
) -> Iterator[Offered]:
    """Yield the functions of the five tools, each with its options.

    Raises :class:`RegistrationError`.
    """
    if not isinstance(site, AdminSite):
        raise RegistrationError(
            f"mcp.admin_site() takes an admin site, as in mcp.admin_site(admin.site, ...); not "
            f"{site!r}."
        )
    if isinstance(permission, str) and "." not in permission:
        raise RegistrationError(
            "mcp.admin_site: permission= takes a Django permission with its app, such as "
            f'"support.{permission}", or a function of the user.'
        )
    chosen = choose(registered_models(site), models, exclude)
    acting = _Actions(site, chosen, actions)
    admins = [
        _admin_model(
            site,
            model,
            server.name,
            write=allowed_of(model, chosen, write, "write="),
            actions=acting.of(model),
            confirm=confirm,
            allow_secret=allow_secret,
        )
        for model in chosen
    ]
    acting.check()
    tools = GenericTools(OfferedModels(admins), prefix=prefix, permission=permission)
    return tools.all(scopes=scopes, write_scopes=write_scopes)


class _Actions:
    """The actions of each model: those that are named for it, or of all those that it has."""

    def __init__(self, site: AdminSite, chosen: Sequence[type[Model]], given: Allowed) -> None:
        self._site = site
        self._chosen = chosen
        self._given = given
        self._unused = set() if isinstance(given, Mapping) else set(given)

    def of(self, model: type[Model]) -> Sequence[str]:
        """Return the names of the actions of a model."""
        named = allowed_of(model, self._chosen, self._given, "actions=")
        if isinstance(self._given, Mapping) or not named:
            return named
        admin = self._site.get_model_admin(model)
        known = described(lambda: [*admin.get_actions(describing_request())], [])
        found = [name for name in named if name in known]
        self._unused.difference_update(found)
        return found

    def check(self) -> None:
        """Refuse names that none of the models has."""
        if self._unused:
            raise RegistrationError(
                f"mcp.admin_site: actions= has {', '.join(map(repr, sorted(self._unused)))}, which "
                "none of these models has in its admin."
            )


def _admin_model(
    site: AdminSite, model: type[Model], server_name: str, **options: Any
) -> AdminModel:
    try:
        return AdminModel(site.get_model_admin(model), server_name, **options)
    except RegistrationError as error:
        label = model._meta.label
        raise RegistrationError(
            f"{error} Or leave the model out, by exclude=[{label!r}]; or say by model what may be "
            f'done, as in write={{"{model._meta.app_label}.*": [...]}}.'
        ) from error
