"""Checks of what lies around the endpoints: other URLs, middleware, whoever is let in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Tags, register
from django.core.checks import Warning as CheckWarning
from django.urls import get_resolver
from django.utils.module_loading import import_string

from ..auth import public
from ..conf import Settings, get_settings
from ..http.protected_resource import auth_of
from ..http.request import Endpoint
from ..routing import find_endpoints, path_of
from ..well_known import catch_all, probes
from .partitions import replaced_middleware
from .settings import AUTH_HINT, are_settings_valid

PUBLIC_HINT: Final = (
    f'If that is meant, add "django_mcp.W006" to SILENCED_SYSTEM_CHECKS. Otherwise: {AUTH_HINT}'
)
ORIGINS_HINT: Final = (
    'Name the origins whose pages need them, as in ["https://app.example.com"]. The star also lets '
    "through pages that have made a name of their own point at this server. If that is meant, add "
    '"django_mcp.W007" to SILENCED_SYSTEM_CHECKS.'
)
WELL_KNOWN_HINT: Final = (
    'Put path("", include("django_mcp.well_known")) in front of it, in the URLconf\'s root; '
    'include("django_mcp.urls") there has the same.'
)

#: Middleware whose work the mount does itself, or that an endpoint does not need.
KNOWN_MIDDLEWARE: Final = {
    "corsheaders.middleware.CorsMiddleware",
    "debug_toolbar.middleware.DebugToolbarMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.contrib.redirects.middleware.RedirectFallbackMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.cache.FetchFromCacheMiddleware",
    "django.middleware.cache.UpdateCacheMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.common.BrokenLinkEmailsMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
}

WITHOUT_HINT: Final = (
    "If it protects the endpoint, or prepares what your tools need, do that in AUTH, or remove "
    "mount() from the ASGI application: the view runs all middleware."
)
SILENCE_HINT: Final = (
    'If the endpoint needs nothing of it, add "{name}" to DJANGO_MCP["MOUNT_WITHOUT"].'
)
_IN_AUTH: Final = "Whom it lets in, AUTH decides for an endpoint: ask there for the same."
_FOR_PAGES: Final = "It is for pages, and answers of an endpoint are JSON and events."
_IN_TOOLS: Final = "Do in your tools, or in a decorator of theirs, what it does around a request: "

#: What replaces well-known middleware at an endpoint.
REPLACEMENTS: Final = {
    "allauth.account.middleware.AccountMiddleware": _FOR_PAGES,
    "auditlog.middleware.AuditlogMiddleware": f"{_IN_TOOLS}auditlog.context.set_actor(ctx.user).",
    "axes.middleware.AxesMiddleware": (
        "It locks out whoever fails to log in; tell axes of what AUTH refuses, or use RATE_LIMIT."
    ),
    "csp.middleware.CSPMiddleware": _FOR_PAGES,
    "django.contrib.admindocs.middleware.XViewMiddleware": _FOR_PAGES,
    "django.contrib.auth.middleware.PersistentRemoteUserMiddleware": _IN_AUTH,
    "django.contrib.auth.middleware.RemoteUserMiddleware": _IN_AUTH,
    "django.contrib.sites.middleware.CurrentSiteMiddleware": (
        "It sets request.site; call get_current_site(request) where you need it."
    ),
    "django_htmx.middleware.HtmxMiddleware": _FOR_PAGES,
    "django_otp.middleware.OTPMiddleware": _IN_AUTH,
    "django_permissions_policy.PermissionsPolicyMiddleware": _FOR_PAGES,
    "django_prometheus.middleware.PrometheusAfterMiddleware": (
        "Count calls in a receiver of django_mcp.signals.call_finished."
    ),
    "django_prometheus.middleware.PrometheusBeforeMiddleware": (
        "Count calls in a receiver of django_mcp.signals.call_finished."
    ),
    "django_ratelimit.middleware.RatelimitMiddleware": "RATE_LIMIT is for endpoints.",
    "django_structlog.middlewares.RequestMiddleware": (
        "The logger django_mcp.calls has a record of every call, with its user."
    ),
    "hijack.middleware.HijackUserMiddleware": _IN_AUTH,
    "oauth2_provider.middleware.OAuth2TokenMiddleware": _IN_AUTH,
    "oscar.apps.basket.middleware.BasketMiddleware": (
        "It sets request.basket and request.strategy; make both in your tools, of the caller."
    ),
    "reversion.middleware.RevisionMiddleware": f"{_IN_TOOLS}reversion.create_revision().",
    "simple_history.middleware.HistoryRequestMiddleware": (
        f"{_IN_TOOLS}set _history_user of what is saved to ctx.user."
    ),
    "wagtail.contrib.redirects.middleware.RedirectMiddleware": _FOR_PAGES,
}


#: Middleware that sets something on the thread, or on its connections, for the code that it calls.
THREAD_MIDDLEWARE: Final = {
    "crum.CurrentRequestUserMiddleware",
    "django_currentuser.middleware.ThreadLocalUserMiddleware",
    "django_multitenant.middlewares.MultitenantMiddleware",
    "threadlocals.middleware.ThreadLocalMiddleware",
}


@register(Tags.urls)
def check_well_known(**kwargs: Any) -> list[CheckMessage]:
    """Check that clients that look for documents around an endpoint get no page of the site's."""
    if not getattr(django_settings, "ROOT_URLCONF", None):
        return []
    resolver = get_resolver()
    paths = [path_of(chain) for chain, _ in find_endpoints(resolver)]
    asked_for = [url for path in paths if path.isascii() for url in probes(path)]
    hidden: dict[str, str] = {}
    for url in asked_for:
        pattern = catch_all(resolver, url)
        if pattern:
            hidden.setdefault(pattern, url)
    return [
        CheckWarning(
            f"The URL pattern {pattern!r} answers {url}, which MCP clients ask for.",
            hint=WELL_KNOWN_HINT,
            id="django_mcp.W008",
        )
        for pattern, url in hidden.items()
    ]


@register
def check_middleware(**kwargs: Any) -> list[CheckMessage]:
    """Check what the mount bypasses, where the ASGI application has one."""
    if not are_settings_valid():
        return []
    known = {*KNOWN_MIDDLEWARE, *replaced_middleware(), *get_settings().mount_without}
    unknown = [name for name in django_settings.MIDDLEWARE if name not in known]
    if not unknown or not _has_mount():
        return []
    return [
        CheckWarning(
            f"The mount answers MCP requests without the middleware {name}.",
            hint=f"{REPLACEMENTS.get(name, WITHOUT_HINT)} {SILENCE_HINT.format(name=name)}",
            id="django_mcp.W002",
        )
        for name in dict.fromkeys(unknown)
    ]


@register
def check_call_context(**kwargs: Any) -> list[CheckMessage]:
    """Check that what middleware sets on its thread is there on others, where some are used."""
    if not are_settings_valid():
        return []
    settings = get_settings()
    has_other_threads = settings.wsgi_streams or getattr(django_settings, "ASGI_APPLICATION", None)
    found = [name for name in django_settings.MIDDLEWARE if name in THREAD_MIDDLEWARE]
    if settings.call_context is not None or not (has_other_threads and found):
        return []
    message = f"What {', '.join(found)} sets is not there on the threads that run tools."
    hint = (
        'Set it there as well, by DJANGO_MCP["CALL_CONTEXT"]. If no tool needs it, add '
        '"django_mcp.W018" to SILENCED_SYSTEM_CHECKS.'
    )
    return [CheckWarning(message, hint=hint, id="django_mcp.W018")]


@register(Tags.security, deploy=True)
def check_openness(**kwargs: Any) -> list[CheckMessage]:
    """Check what is open to more people than a site in production may want."""
    if not getattr(django_settings, "ROOT_URLCONF", None) or not are_settings_valid():
        return []
    settings = get_settings()
    served = [endpoint for _, endpoint in find_endpoints(get_resolver())]
    found = [each.server.name for each in served if _is_public(each, settings)]
    messages: list[CheckMessage] = [
        CheckWarning(
            f"The server {name!r} is open to everybody: its AUTH is django_mcp.auth.public.",
            hint=PUBLIC_HINT,
            id="django_mcp.W006",
        )
        for name in dict.fromkeys(found)
    ]
    if "*" in settings.allowed_origins:
        message = 'Pages of every website may use the endpoints: DJANGO_MCP["ALLOWED_ORIGINS"].'
        messages.append(CheckWarning(message, hint=ORIGINS_HINT, id="django_mcp.W007"))
    return messages


def _is_public(endpoint: Endpoint, settings: Settings) -> bool:
    auth = auth_of(endpoint, settings)
    names = (public, f"{public.__module__}.{public.__name__}")
    return any(each in names for each in (auth, *getattr(auth, "members", ())))


def _has_mount() -> bool:
    path = getattr(django_settings, "ASGI_APPLICATION", None)
    if not path:
        return False
    try:
        application = import_string(path)
    except Exception:  # whatever is wrong there is reported by what serves it
        return False
    return any(getattr(each, "is_mcp_mount", False) for each in _applications(application))


def _applications(application: Any) -> Iterable[Any]:
    yield application
    # Channels' ProtocolTypeRouter.
    yield from getattr(application, "application_mapping", {}).values()
