"""Which resource of OAuth an endpoint is, at the URL by which a request came to it.

There is one only where the site, or the server, says who issues tokens for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from django.urls import get_script_prefix
from django.utils.encoding import escape_uri_path
from django.utils.module_loading import import_string

from ..auth import ProtectedResource
from ..conf import Settings
from ..server.base_urls import all_at_host, nearest_first
from ..server.registry import MCPServer
from ..server.scopes import all_scopes
from .request import Endpoint, allowed_hosts, is_host_among

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
"""RFC 9728, section 3."""

imported = lru_cache(maxsize=64)(import_string)


def auth_of(endpoint: Endpoint, settings: Settings) -> str | Callable[..., Any] | None:
    """Return who decides about the callers of an endpoint: the nearest counts."""
    return endpoint.auth or endpoint.server.auth or settings.auth


def authorization_servers_of(endpoint: Endpoint, settings: Settings) -> tuple[str, ...]:
    """Return who issues tokens for an endpoint; nobody, unless somebody has said so.

    What the settings say is not meant for an endpoint whose ``AUTH`` takes no tokens of others.
    """
    own = endpoint.server.authorization_servers
    if own is not None or not settings.authorization_servers:
        return own or ()
    auth = auth_of(endpoint, settings)
    auth = imported(auth) if isinstance(auth, str) else auth
    return settings.authorization_servers if getattr(auth, "takes_oauth_tokens", True) else ()


def find_resource(
    endpoint: Endpoint, settings: Settings, *, host: str, is_secure: bool, path: str
) -> ProtectedResource | None:
    """Return the resource that an endpoint is at a path below the script prefix, if it is one.

    ``host`` has been checked. Without ``BASE_URL`` it must be in ``ALLOWED_HOSTS`` by more than
    the star: else whoever sends the request would choose for which resource tokens are good.
    """
    issuers = tuple(all_at_host(authorization_servers_of(endpoint, settings), host))
    bases = _bases(settings, host, is_secure) if issuers else []
    if not bases:
        return None
    # 2026-07-28, basic/authorization, "Canonical Server URI": without a slash at the end.
    path = escape_uri_path(path.rstrip("/"))
    urls = frozenset(f"{base}{path}" for base in bases)
    others = settings.token_issuers
    return ProtectedResource(
        url=f"{bases[0]}{path}",
        urls=urls,
        metadata_url=f"{bases[0]}{WELL_KNOWN}{path}",
        authorization_servers=issuers,
        scopes=_scopes_at_login(endpoint.server, settings),
        other_issuers=tuple(name for each in issuers for name in others.get(each, ())),
        other_names=_other_names(urls, issuers, settings) if settings.token_audiences else NONE,
        scope_format=settings.scope_format,
    )


NONE: Final = frozenset[str]()


def _other_names(
    urls: frozenset[str], issuers: tuple[str, ...], settings: Settings
) -> frozenset[str]:
    """Return what tokens may name instead of the URLs of an endpoint.

    Nothing, where several issue tokens: what one of them calls the endpoint may be something else
    at another.
    """
    if len(issuers) > 1:
        return NONE
    return frozenset(name for url in urls for name in settings.token_audiences.get(url, ()))


def _scopes_at_login(server: MCPServer, settings: Settings) -> tuple[str, ...]:
    # 2026-07-28, basic/authorization, "Scope Selection Strategy": those for the basics, unless the
    # site wants its users to be asked once for all.
    all_at_once = settings.scopes_at_login == "all"
    return tuple(all_scopes(server, settings)) if all_at_once else server.scopes


def path_below_prefix(path: str) -> str:
    """Return the path of a URL without the script prefix."""
    return path[len(get_script_prefix()) - 1 :]


def _bases(settings: Settings, host: str, is_secure: bool) -> list[str]:
    """Return what comes before the paths of endpoints, that by which the client knows us first."""
    host = host.lower()
    if settings.base_url:
        return nearest_first(settings.base_url, host)
    if not is_host_among(host, tuple(each for each in allowed_hosts() if each != "*")):
        return []
    scheme, port = ("https", ":443") if is_secure else ("http", ":80")
    return [f"{scheme}://{host.removesuffix(port)}{get_script_prefix().rstrip('/')}"]
