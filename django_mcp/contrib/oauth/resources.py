"""The endpoints of this site as the resources that its own authorization server issues tokens for.

Clients name them by URL when they ask for a token (RFC 8707, section 2; 2026-07-28,
basic/authorization, "Resource Parameter Implementation").
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from django.core.exceptions import DisallowedHost, ImproperlyConfigured
from django.http import HttpRequest
from django.urls import Resolver404, get_resolver, get_urlconf

from ...auth import ProtectedResource
from ...conf import get_settings
from ...http.protected_resource import find_resource, path_below_prefix
from ...http.request import Endpoint
from ...http.views import endpoint_of
from ...routing import find_endpoints, path_of, rest_of


def resource_at(url: str) -> ProtectedResource | None:
    """Return the endpoint that is the resource at ``url``, letter by letter, if there is one."""
    try:
        parts, settings = urlsplit(url), get_settings()
    except (ValueError, ImproperlyConfigured):
        return None
    # Where BASE_URL has a path, a proxy takes it away.
    bases = [each for each in settings.base_url if url.startswith(f"{each}/")]
    paths = [url[len(each) :] for each in bases] if settings.base_url else [_below(parts.path)]
    for path in map(unquote, paths):
        endpoint = _endpoint_at(path)
        found = endpoint and find_resource(
            endpoint, settings, host=parts.netloc, is_secure=parts.scheme == "https", path=path
        )
        if found and url in found.urls:
            return found
    return None


def only_resource(request: HttpRequest) -> ProtectedResource | None:
    """Return the site's only endpoint, as whoever sends a request knows it; else nothing."""
    found = list(find_endpoints(get_resolver(get_urlconf())))
    if len(found) != 1:
        return None
    chain, endpoint = found[0]
    path = f"/{path_of(chain)}"
    if rest_of(path, chain) is None:  # it has variables
        return None
    try:
        host, settings = request.get_host(), get_settings()
    except (DisallowedHost, ImproperlyConfigured):
        return None
    return find_resource(endpoint, settings, host=host, is_secure=request.is_secure(), path=path)


def _below(path: str) -> str:
    return path_below_prefix(path) or "/"


def _endpoint_at(path: str) -> Endpoint | None:
    try:
        return endpoint_of(get_resolver(get_urlconf()).resolve(path).func)
    except Resolver404:
        return None
