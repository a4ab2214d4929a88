"""What a token can be limited to: the servers of the site, and the scopes that they need."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings as django_settings
from django.urls import get_resolver, get_urlconf

from ...conf import Settings, get_settings
from ...http.protected_resource import auth_of, imported
from ...http.request import Endpoint
from ...protocol.scopes import with_included
from ...routing import find_endpoints
from ...server.registry import MCPServer


def known_scopes() -> dict[str, str]:
    """Return the scopes that are good for something here, with what each allows, or nothing.

    Those of ``SCOPES`` come first, in its order.
    """
    settings = get_settings()
    hierarchy = settings.scope_hierarchy
    others = {
        *with_included(hierarchy, hierarchy),
        *settings.read_only_scopes,
        *(scope for server in known_servers() for scope in _needed(server)),
    }
    names = dict.fromkeys([*settings.scopes, *sorted(others)])
    return {scope: str(settings.scopes.get(scope, "")) for scope in names}


def own_scopes() -> dict[str, str]:
    """Return those that people may give to tokens of their own, likewise."""
    known = known_scopes()
    allowed = allowed_scopes(get_settings())
    if allowed is None:
        return known
    # Also what is misspelt: without any scope to choose no scopes would limit the tokens.
    in_order = [*(each for each in known if each in allowed), *sorted(allowed.difference(known))]
    return {scope: known.get(scope, "") for scope in in_order}


def allowed_scopes(settings: Settings) -> frozenset[str] | None:
    """Return ``OWN_TOKEN_SCOPES`` with what they include; ``None`` where any will do."""
    wanted = settings.own_token_scopes
    return with_included(wanted, settings.scope_hierarchy) if wanted else None


def known_servers() -> list[MCPServer]:
    """Return the servers that have a URL, in the order of their names."""
    return _in_order(endpoint.server for endpoint in _endpoints())


def servers_with_tokens() -> list[MCPServer]:
    """Return those of them to which a token may be the way in."""
    settings = get_settings()
    return _in_order(each.server for each in _endpoints() if _reads_tokens(each, settings))


def _endpoints() -> Iterator[Endpoint]:
    if getattr(django_settings, "ROOT_URLCONF", None):
        for _, endpoint in find_endpoints(get_resolver(get_urlconf())):
            yield endpoint


def _in_order(servers: Iterator[MCPServer]) -> list[MCPServer]:
    by_name = {server.name: server for server in servers}
    return [by_name[name] for name in sorted(by_name)]


def _reads_tokens(endpoint: Endpoint, settings: Settings) -> bool:
    """Return whether the endpoint's ``AUTH`` looks at tokens, as far as is known."""
    auth = auth_of(endpoint, settings)
    try:
        auth = imported(auth) if isinstance(auth, str) else auth
    except ImportError:  # of which a system check tells
        return False
    return auth is not None and getattr(auth, "reads_authorization", True)


def _needed(server: MCPServer) -> Iterator[str]:
    yield from server.scopes
    for primitive in (*server.tools, *server.resources, *server.prompts):
        yield from primitive.scopes
