"""``path("", include("django_mcp.well_known"))``: what clients look for around an endpoint.

Before they log in, and some of them before anything else, clients ask for documents that say who
issues tokens for an endpoint: at the root of the site, with the endpoint's path behind or without
(RFC 8414, RFC 9728, OpenID Connect Discovery), and below the endpoint. They go on after a 404, and
show people whatever else they get. ``include("django_mcp.urls")`` at the root has these patterns.

The document of the protected resource is there where the site says who issues tokens: with the path
of an endpoint behind it, and without where there is one endpoint. All others are absent.

Nothing of the site's is in the shadow of them: they match what ends or begins with the path of an
endpoint. Of the documents without a path that of the protected resource is the endpoints'; those of
an issuer are the site's, and are answered here only where no other pattern answers them, but one
that answers everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import DisallowedHost, ImproperlyConfigured
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    JsonResponse,
)
from django.urls import (
    Resolver404,
    ResolverMatch,
    URLPattern,
    URLResolver,
    get_resolver,
    get_urlconf,
)
from django.urls.resolvers import RegexPattern

from .auth import ProtectedResource
from .conf import get_settings
from .http.protected_resource import WELL_KNOWN, find_resource
from .http.request import WANTED_TOOLS, Endpoint
from .http.views import MCPView, as_it_stands, endpoint_of, outside_the_site
from .routing import Place, leaves, path_of, rest_of
from .server.file_links import FILE

_PROTECTED_RESOURCE: Final = "oauth-protected-resource"
_DOCUMENTS: Final = (_PROTECTED_RESOURCE, "oauth-authorization-server", "openid-configuration")
_DOCUMENT: Final = rf"\.well-known/(?P<document>{'|'.join(_DOCUMENTS)})"
_AT_ROOT: Final = rf"^{_DOCUMENT}(?:/(?P<path>.*))?$"
_BELOW: Final = rf"^(?P<path>.+)/{_DOCUMENT}/?$"

_NOWHERE: Final = "/no-such-page-of-this-site"

_METHODS: Final = ("GET", "HEAD", "OPTIONS")

_ABSENT: Final = {
    "error": "not_found",
    "error_description": (
        "There is no such document: no OAuth server issues tokens for MCP here. If the endpoint "
        "asks for credentials, configure them in the client."
    ),
}


_EVERYONE: Final = {"Access-Control-Allow-Origin": "*"}


@outside_the_site
def document(request: HttpRequest, **names: str) -> HttpResponseBase:
    """Show the document, or say that there is none, to pages of any origin as well."""
    if request.method == "OPTIONS":
        return _preflight(request)
    resource = _resource(request, **names)
    if resource is None:
        return as_it_stands(JsonResponse(_ABSENT, status=404, headers=_EVERYONE), request)
    if request.method not in ("GET", "HEAD"):
        return as_it_stands(HttpResponseNotAllowed(_METHODS, headers=_EVERYONE), request)
    return JsonResponse(resource.metadata, headers=_EVERYONE)


def _resource(
    request: HttpRequest, /, *, document: str, path: str = ""
) -> ProtectedResource | None:
    """Return the resource that a document is about, if it is one that is shown."""
    if document != _PROTECTED_RESOURCE or not request.path_info.startswith(WELL_KNOWN):
        return None
    path = f"/{path}" if path else _only_path()
    match = _match_at(path) if path else None
    endpoint = endpoint_of(match.func) if match is not None else None
    if match is None or endpoint is None:
        return None
    path = path.rstrip("/").removesuffix(match.kwargs.get(WANTED_TOOLS, ""))
    try:
        settings, host = get_settings(), request.get_host()
    except (ImproperlyConfigured, DisallowedHost):
        return None
    return find_resource(endpoint, settings, host=host, is_secure=request.is_secure(), path=path)


def _only_path() -> str:
    """Return the path of the site's only endpoint, if it has no variables; else nothing."""
    chains = [chain for chain, entry in leaves(get_resolver(get_urlconf())) if is_endpoint(entry)]
    if len(chains) != 1:
        return ""
    path = f"/{path_of(chains[0])}"
    return path if rest_of(path, chains[0]) is not None else ""


def endpoint_at(path: str) -> Endpoint | None:
    """Return the endpoint that the site has at a path, below the script prefix."""
    match = _match_at(path)
    # What chooses among its tools is no endpoint of its own.
    if match is None or match.kwargs.get(WANTED_TOOLS):
        return None
    return endpoint_of(match.func)


def _match_at(path: str) -> ResolverMatch | None:
    try:
        match = get_resolver(get_urlconf()).resolve(path)
    except Resolver404:
        return None
    return None if FILE in match.kwargs else match


def _preflight(request: HttpRequest) -> HttpResponse:
    # Clients send Mcp-Protocol-Version, so in browsers the simplest GET has a preflight.
    response = HttpResponse(status=204)
    del response.headers["Content-Type"]
    asked = request.headers.get("Access-Control-Request-Headers", "*")
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Access-Control-Allow-Methods"] = ", ".join(_METHODS)
    response.headers["Access-Control-Allow-Headers"] = asked
    return response


class DocumentPattern(RegexPattern):
    """Matches the documents of the site's endpoints, and no other path."""

    def match(self, path: str) -> tuple[str, tuple[Any, ...], dict[str, Any]] | None:
        """Return what Django asks of a pattern, or nothing."""
        found = super().match(path)
        if found is None or not self._is_ours(path, **found[2]):
            return None
        return found

    def _is_ours(self, whole: str, /, *, document: str, path: str = "") -> bool:
        places = list(leaves(get_resolver(get_urlconf())))
        own = [chain for chain, entry in places if entry.pattern is self]
        if any(rest_of(f"/{whole}", chain[:-1]) != whole for chain in own):
            # Included below a prefix, where the whole path is not known.
            return False
        if path:
            return _has_endpoint(places, f"/{path}")
        return document == _PROTECTED_RESOURCE or not _is_anothers(places, f"/{whole}")


def _has_endpoint(places: Sequence[Place], path: str) -> bool:
    return any(is_endpoint(entry) and rest_of(path, chain) is not None for chain, entry in places)


def _is_anothers(places: Sequence[Place], path: str) -> bool:
    return any(
        # A page for everything is no document of an issuer, and clients show people what it says.
        rest_of(path, chain) is not None and rest_of(_NOWHERE, chain) is None
        for chain, entry in places
        if not isinstance(entry.pattern, DocumentPattern)
    )


def is_endpoint(entry: URLPattern) -> bool:
    """Return whether an entry of a URLconf leads to an endpoint, perhaps a decorated one."""
    return issubclass(getattr(entry.callback, "view_class", object), MCPView)


def documents() -> list[URLPattern]:
    """Return the patterns; each include has its own, which know where it was put."""
    regexes = (_AT_ROOT, _BELOW)
    return [URLPattern(DocumentPattern(each, is_endpoint=True), document) for each in regexes]


def probes(path: str) -> list[str]:
    """Return the documents that clients ask for on behalf of the endpoint at ``path``."""
    return [
        f"/.well-known/{_PROTECTED_RESOURCE}",
        *(f"/.well-known/{name}/{path}" for name in _DOCUMENTS),
        *(f"/{path}/.well-known/{name}" for name in _DOCUMENTS),
    ]


def catch_all(resolver: URLResolver, url: str) -> str:
    """Return the pattern that answers ``url`` as it answers everything, or nothing."""
    found = _match(resolver, url)
    if found is None or found.func is document:
        return ""
    anything = _match(resolver, f"{_NOWHERE}{url}")
    return found.route if anything is not None and anything.route == found.route else ""


def is_absent(resolver: URLResolver, url: str) -> bool:
    """Return whether nothing at all answers ``url``."""
    return _match(resolver, url) is None


def _match(resolver: URLResolver, url: str) -> ResolverMatch | None:
    # CommonMiddleware sends whoever finds nothing on to the same path with a slash.
    for each in (url, f"{url}/") if settings.APPEND_SLASH else (url,):
        try:
            return resolver.resolve(each)
        except Resolver404:
            pass
    return None


urlpatterns = documents()
