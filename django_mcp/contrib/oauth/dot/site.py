"""What the site is to OAuth: an issuer, endpoints that are resources, and their scopes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from django.conf import settings as django_settings
from django.http import HttpRequest
from django.urls import get_resolver, get_urlconf
from django.utils.encoding import escape_uri_path
from django.utils.translation import gettext_lazy as _
from oauth2_provider.scopes import SettingsScopes
from oauth2_provider.settings import oauth2_settings

from ....conf import Settings, get_settings
from ....http.protected_resource import authorization_servers_of, find_resource
from ....http.request import Endpoint
from ....routing import find_endpoints, path_of, rest_of
from ....server.base_urls import all_at_host, at_host
from ....server.registry import MCPServer
from ....server.scopes import all_scopes
from ....well_known import endpoint_at

DEFAULT_SCOPE: Final = "mcp"
"""What tokens are good for on a site that has no scopes of its own."""
_DEFAULT_SENTENCE: Final = _("Do everything here that you may do yourself")


class ResourceError(Exception):
    """A client asks for a token for what is not one endpoint of this site; the text says what."""


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint, at a URL."""

    url: str
    endpoint: Endpoint

    @property
    def name(self) -> str:
        """What people call it."""
        return self.endpoint.server.title


def configured_issuer() -> str:
    """Return the issuer as the settings have it, with a star where each tenant has its own."""
    return oauth2_settings.OIDC_ISS_ENDPOINT or next(iter(get_settings().base_url), "")


def issuer() -> str:
    """Return the identifier of the site's authorization server; empty if it has none.

    All documents and answers have this one: clients must reject two that differ (RFC 8414, section
    3.3; RFC 9207, section 2.4).
    """
    return at_host(configured_issuer(), _host.get())


_host: Final[ContextVar[str]] = ContextVar("mcp_login_host", default="")


def knowing_host(view: Callable[..., Any]) -> Callable[..., Any]:
    """Return the view, in which it is known at which host its request has come."""

    @wraps(view)
    def knowing(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        token = _host.set(request.get_host())
        try:
            return view(request, *args, **kwargs)
        finally:
            _host.reset(token)

    return knowing


def sentences() -> dict[str, Any]:
    """Return all scopes of the site's endpoints, with what each allows as people read it."""
    settings = get_settings()
    found = dict(settings.scopes)
    for server in _servers():
        for scope in all_scopes(server, settings):
            found.setdefault(scope, scope)
    return found or {DEFAULT_SCOPE: _DEFAULT_SENTENCE}


def has_scope_of_ours(scopes: Iterable[str]) -> bool:
    """Return whether any of these is a scope of the site's endpoints."""
    asked = frozenset(scopes)
    key = (get_settings(), get_urlconf() or django_settings.ROOT_URLCONF)
    # What was registered since is looked for where nothing else is found.
    return not (asked.isdisjoint(_known(*key)) and asked.isdisjoint(sentences()))


@lru_cache(maxsize=8)
def _known(settings: Settings, urlconf: Any) -> frozenset[str]:
    return frozenset(sentences())


def scopes_at_first() -> list[str]:
    """Return what a client gets that does not say what it wants; never nothing."""
    settings = get_settings()
    if settings.scopes_at_login == "all":
        return list(sentences())
    return list(settings.base_scopes or settings.read_only_scopes or sentences())


def target_at(url: str) -> Target | None:
    """Return the endpoint whose resource a URL names exactly, if this site's issuer serves it."""
    settings, ours = get_settings(), issuer()
    for base in all_at_host(settings.base_url, _host.get()):
        if not url.startswith(f"{base}/"):
            continue
        path, parts = unquote(url[len(base) :]), urlsplit(base)
        endpoint = endpoint_at(path)
        if endpoint is None:
            continue
        resource = find_resource(
            endpoint, settings, host=parts.netloc, is_secure=parts.scheme == "https", path=path
        )
        if resource and url in resource.urls and ours in resource.authorization_servers:
            return Target(url, endpoint)
    return None


def choose_target(resources: Sequence[str], scopes: Sequence[str]) -> Target | None:
    """Return the endpoint for which a token with ``scopes`` is to be.

    ``resources`` are those that the client names (RFC 8707, section 2). If it names none, that is
    the endpoint to which all of the scopes belong, if there is one. ``None`` means that it asks for
    nothing of the endpoints'. Raises :class:`ResourceError`.
    """
    named = list(dict.fromkeys(resources))
    if len(named) > 1:
        raise ResourceError("Ask for a token for one resource at a time")
    if named:
        target = target_at(named[0])
        if target is None:
            raise ResourceError("The resource is no endpoint of this site")
        return target
    if not has_scope_of_ours(scopes):
        return None
    fitting = [each for each in _targets() if _belong_to(scopes, each.endpoint.server)]
    if len(fitting) != 1:
        raise ResourceError("Say by the parameter resource for which endpoint the token is")
    return fitting[0]


def _belong_to(scopes: Sequence[str], server: MCPServer) -> bool:
    settings = get_settings()
    # What nothing in particular needs belongs to all.
    of_others = [all_scopes(each, settings) for each in _servers() if each is not server]
    foreign = set().union(*of_others).difference(all_scopes(server, settings))
    return foreign.isdisjoint(scopes) and set(sentences()).issuperset(scopes)


def _servers() -> list[MCPServer]:
    return list(dict.fromkeys(endpoint.server for _, endpoint in _endpoints()))


def _endpoints() -> Iterator[tuple[Any, Endpoint]]:
    ours = configured_issuer()
    for chain, endpoint in find_endpoints(get_resolver(get_urlconf())):
        try:
            issuers = authorization_servers_of(endpoint, get_settings())
        except ImportError:  # of which a system check tells
            continue
        if ours in issuers:
            yield chain, endpoint


def _targets() -> Iterator[Target]:
    for base in all_at_host(get_settings().base_url, _host.get())[:1]:
        for chain, endpoint in _endpoints():
            path = f"/{path_of(chain)}"
            if "<" not in path and rest_of(path, chain) is not None:
                yield Target(f"{base}{escape_uri_path(path.rstrip('/'))}", endpoint)


class Scopes(SettingsScopes):  # type: ignore[misc]  # DOT has no type hints
    """The scopes of the site: ``OAUTH2_PROVIDER["SCOPES_BACKEND_CLASS"]``.

    Clients that have registered themselves may ask for those of the endpoints. Those that somebody
    of the site has registered may also ask for ``OAUTH2_PROVIDER["SCOPES"]``.
    """

    def get_all_scopes(self) -> dict[str, Any]:
        """Return all, with their sentences."""
        return {**super().get_all_scopes(), **sentences()}

    def get_available_scopes(
        self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any
    ) -> list[str]:
        """Return what an application may ask for; for all the world those of the endpoints."""
        if application is None or application.registration_source != "manual":
            return list(sentences())
        return list(self.get_all_scopes())

    def get_default_scopes(
        self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any
    ) -> list[str]:
        """Return what an application gets that names none."""
        return scopes_at_first()
