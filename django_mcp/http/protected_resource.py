"""Which resource of OAuth an endpoint is, at the URL by which a request came to it.

There is one only where the site, or the server, says who issues tokens for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from django.urls import get_script_prefix
from django.utils.encoding import escape_uri_path
from django.utils.module_loading import import_string

from ..auth import ProtectedResource
from ..conf import Settings
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
    issuers = authorization_servers_of(endpoint, settings)
    bases = _bases(settings, host, is_secure) if issuers else []
    if not bases:
        return None
    # 2026-07-28, basic/authorization, "Canonical Server URI": without a slash at the end.
    path = escape_uri_path(path.rstrip("/"))
    return ProtectedResource(
        url=f"{bases[0]}{path}",
        urls=frozenset(f"{base}{path}" for base in bases),
        metadata_url=f"{bases[0]}{WELL_KNOWN}{path}",
        authorization_servers=issuers,
        scopes=endpoint.server.scopes,
    )


def path_below_prefix(path: str) -> str:
    """Return the path of a URL without the script prefix."""
    return path[len(get_script_prefix()) - 1 :]


def _bases(settings: Settings, host: str, is_secure: bool) -> list[str]:
    """Return what comes before the paths of endpoints, that by which the client knows us first."""
    host = host.lower()
    if settings.base_url:
        # The scheme may be another one behind a proxy. Sorting keeps the order of the others.
        return sorted(settings.base_url, key=lambda base: not _is_at(base, host))
    if not is_host_among(host, tuple(each for each in allowed_hosts() if each != "*")):
        return []
    scheme, port = ("https", ":443") if is_secure else ("http", ":80")
    return [f"{scheme}://{host.removesuffix(port)}{get_script_prefix().rstrip('/')}"]


def _is_at(base: str, host: str) -> bool:
    parts = urlsplit(base.lower())
    default = {"https": ":443", "http": ":80"}[parts.scheme]
    return parts.netloc.removesuffix(default) == host.removesuffix(default)
