"""``path("", include("django_mcp.well_known"))``: what clients look for around an endpoint.

Before they log in, and some of them before anything else, clients ask for documents that say who
issues tokens for an endpoint: at the root of the site, with the endpoint's path behind or without
(RFC 8414, RFC 9728, OpenID Connect Discovery), and below the endpoint. They go on after a 404, and
show people whatever else they get. ``include("django_mcp.urls")`` at the root has these patterns.

Nothing of the site's is in the shadow of them: they match what ends or begins with the path of an
endpoint. Of the documents without a path that of the protected resource is the endpoints'; those of
an issuer are the site's, and are answered here only where no other pattern answers them, but one
that answers everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import (
    Resolver404,
    ResolverMatch,
    URLPattern,
    URLResolver,
    get_resolver,
    get_urlconf,
)
from django.urls.resolvers import RegexPattern

from .http.views import MCPView, as_it_stands, outside_the_site
from .routing import Place, leaves, rest_of

_PROTECTED_RESOURCE: Final = "oauth-protected-resource"
_DOCUMENTS: Final = (_PROTECTED_RESOURCE, "oauth-authorization-server", "openid-configuration")
_DOCUMENT: Final = rf"\.well-known/(?P<document>{'|'.join(_DOCUMENTS)})"
_AT_ROOT: Final = rf"^{_DOCUMENT}(?:/(?P<path>.*))?$"
_BELOW: Final = rf"^(?P<path>.+)/{_DOCUMENT}/?$"

_NOWHERE: Final = "/no-such-page-of-this-site"

_ABSENT: Final = {
    "error": "not_found",
    "error_description": (
        "There is no such document: no OAuth server issues tokens for MCP here. If the endpoint "
        "asks for credentials, configure them in the client."
    ),
}


@outside_the_site
def document(request: HttpRequest, **names: str) -> HttpResponseBase:
    """Say that there is no such document, to pages of any origin as well."""
    if request.method == "OPTIONS":
        return _preflight(request)
    everyone = {"Access-Control-Allow-Origin": "*"}
    return as_it_stands(JsonResponse(_ABSENT, status=404, headers=everyone), request)


def _preflight(request: HttpRequest) -> HttpResponse:
    # Clients send Mcp-Protocol-Version, so in browsers the simplest GET has a preflight.
    response = HttpResponse(status=204)
    del response.headers["Content-Type"]
    asked = request.headers.get("Access-Control-Request-Headers", "*")
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Access-Control-Allow-Methods"] = "GET, HEAD, OPTIONS"
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


def _match(resolver: URLResolver, url: str) -> ResolverMatch | None:
    # CommonMiddleware sends whoever finds nothing on to the same path with a slash.
    for each in (url, f"{url}/") if settings.APPEND_SLASH else (url,):
        try:
            return resolver.resolve(each)
        except Resolver404:
            pass
    return None


urlpatterns = documents()
