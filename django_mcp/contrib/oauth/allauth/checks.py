"""Checks of a site whose authorization server is allauth's provider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured
from django.urls import NoReverseMatch, Resolver404, resolve, reverse
from django.utils.module_loading import import_string

from ....checks.settings import are_settings_valid
from ....conf import get_settings
from .adapter import OIDCAdapterMixin
from .auth import PROVIDER

LONELY_CACHES: Final = ("locmem.LocMemCache", "dummy.DummyCache")
ADAPTER_HINT: Final = (
    "Write class Adapter(OIDCAdapterMixin, DefaultOIDCAdapter), in this order, and name it in "
    "IDP_OIDC_ADAPTER."
)
URLS_HINT: Final = (
    'Put path("", include("django_mcp.contrib.oauth.allauth.urls")) at the root of the URLconf, '
    'instead of include("allauth.idp.urls").'
)


@register(Tags.urls)
def check_provider(**kwargs: object) -> list[CheckMessage]:
    """Check that allauth's provider does what clients of MCP need, and no more."""
    has_urls = getattr(django_settings, "ROOT_URLCONF", None)
    if not has_urls or not are_settings_valid() or not apps.is_installed(PROVIDER):
        return []
    return [*_adapter(), *_urls(), *_scopes(), *_issuer(), *_dangers()]


def _adapter() -> Iterator[CheckMessage]:
    from allauth.idp.oidc import app_settings  # noqa: PLC0415 - it is installed, see above

    try:
        adapter: Any = import_string(app_settings.ADAPTER)
    except ImportError as error:
        problem = f"IDP_OIDC_ADAPTER cannot be imported: {error}."
    else:
        base = import_string("allauth.idp.oidc.adapter.DefaultOIDCAdapter")
        kinds = [
            each for each in getattr(adapter, "__mro__", ()) if each in (OIDCAdapterMixin, base)
        ]
        if kinds == [OIDCAdapterMixin, base]:
            return
        problem = "IDP_OIDC_ADAPTER is no OIDCAdapterMixin, so allauth knows no scopes of MCP."
    yield Error(problem, hint=ADAPTER_HINT, id="django_mcp.E040")


def _urls() -> Iterator[CheckMessage]:
    from . import views  # noqa: PLC0415 - allauth's models are there by now

    wanted = {"authorization": views.authorization, "token": views.token}
    for name, view in wanted.items():
        try:
            url = reverse(f"idp:oidc:{name}")
            found = resolve(url).func
        except (NoReverseMatch, Resolver404):
            yield Error(
                f"allauth's provider has no URL for {name!r}.", hint=URLS_HINT, id="django_mcp.E041"
            )
        else:
            if found is not view:
                yield Error(
                    f"{url} is answered by allauth's own view, which gives tokens for resources "
                    "that nobody has consented to.",
                    hint=URLS_HINT,
                    id="django_mcp.E041",
                )
    try:
        metadata: Any = resolve("/.well-known/oauth-authorization-server").func
    except Resolver404:
        metadata = None
    if metadata is not views.server_metadata:
        yield Error(
            "/.well-known/oauth-authorization-server, where clients look for the authorization "
            "server, is answered by something else or by nothing.",
            hint=URLS_HINT,
            id="django_mcp.E041",
        )


def _scopes() -> Iterator[CheckMessage]:
    if not get_settings().scopes:
        yield Error(
            'allauth lets nobody consent to nothing, and DJANGO_MCP["SCOPES"] is empty.',
            hint='Name one scope at least: DJANGO_MCP["SCOPES"] = {"mcp": "Act for you"}.',
            id="django_mcp.E042",
        )


def _issuer() -> Iterator[CheckMessage]:
    settings = get_settings()
    origins = {"/".join(each.split("/")[:3]) for each in settings.base_url}
    issuers = {each.rstrip("/") for each in settings.authorization_servers}
    if origins and issuers and not origins & issuers:
        yield Error(
            f"allauth's provider is at {' or '.join(sorted(origins))}, and "
            'DJANGO_MCP["AUTHORIZATION_SERVERS"] has it not, so clients find another.',
            hint="Write scheme and host of BASE_URL, without a path.",
            id="django_mcp.E043",
        )


def _dangers() -> Iterator[CheckMessage]:
    from allauth.idp.oidc import app_settings  # noqa: PLC0415 - it is installed, see above

    if app_settings.CIMD_ENABLED:
        yield CheckWarning(
            "IDP_OIDC_CIMD_ENABLED is on: allauth looks documents of clients up itself, and fails "
            "where a client sends its credentials by HTTP's Basic.",
            hint="Leave it out. django_mcp fetches them, with care, and says so to clients.",
            id="django_mcp.W040",
        )
    if app_settings.DCR_ENABLED and app_settings.DCR_REQUIRES_INITIAL_ACCESS_TOKEN:
        yield CheckWarning(
            "Clients of MCP that register themselves have no token for it, so none can.",
            hint="IDP_OIDC_DCR_REQUIRES_INITIAL_ACCESS_TOKEN = False, or leave registration off.",
            id="django_mcp.W041",
        )


@register(Tags.caches, deploy=True)
def check_code_cache(**kwargs: object) -> list[CheckMessage]:
    """Check that every process knows the codes that another has sent."""
    try:
        backend = str(django_settings.CACHES["default"]["BACKEND"])
    except (KeyError, ImproperlyConfigured):
        return []
    if not apps.is_installed(PROVIDER) or not backend.endswith(LONELY_CACHES):
        return []
    message = (
        "allauth keeps the codes of logins in the cache 'default', which each process has for "
        "itself, so a login ends where another process is asked for its token."
    )
    hint = "Name a cache that all processes share, in Redis, Memcached or the database."
    return [CheckWarning(message, hint=hint, id="django_mcp.W042")]
