"""``manage.py mcp oauth-setup``: what to paste for logins by django-oauth-toolkit."""

from __future__ import annotations

import argparse
from typing import Any, Final

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, CommandParser

from ...store.cleanup import CleanupRule

SETTINGS: Final = """\
# settings.py

SITE = {site!r}  # as people reach it: the issuer of tokens, and how their resources begin
DJANGO_MCP = {{
    # ... what you have, and:
    "AUTH": "django_mcp.contrib.oauth.dot_auth",
    "BASE_URL": SITE,
    "AUTHORIZATION_SERVERS": SITE,
}}
OAUTH2_PROVIDER = {{
    "OIDC_ISS_ENDPOINT": SITE,
    "OAUTH2_VALIDATOR_CLASS": "django_mcp.contrib.oauth.dot.validator.Validator",
    "SCOPES_BACKEND_CLASS": "django_mcp.contrib.oauth.dot.site.Scopes",
    # How clients introduce themselves: by registration, or by a document that is fetched.
    "DCR_ENABLED": True,
    "DCR_REGISTRATION_PERMISSION_CLASSES": ["oauth2_provider.dcr.AllowAllDCRPermission"],
    "CIMD_ENABLED": {fetches},{remark}
    "CIMD_REGISTRATION_PERMISSION_CLASSES": [
        "django_mcp.contrib.oauth.dot.documents.OnConsentPage",
    ],
    "CIMD_METADATA_FETCHER": "django_mcp.contrib.oauth.dot.documents.Fetcher",
    # Where they may be answered. "http" is for programs on the users' own machines alone.
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http", "cursor", "vscode", "vscode-insiders"],
    "ALLOW_LOCALHOST_LOOPBACK": True,
    # How long tokens are good, and how they are kept.
    "ACCESS_TOKEN_EXPIRE_SECONDS": 60 * 60,
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 24 * 60 * 60,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
}}
"""

URLS: Final = """\
# urls.py, at the root of the URLconf

from django.urls import include, path

urlpatterns = [
    path("", include("django_mcp.contrib.oauth.urls")),
    path("", include("django_mcp.urls")),
    # ...
]
"""

REMARK: Final = "  # no outgoing internet: clients that have documents would not fall back"


def add_commands(subcommands: argparse._SubParsersAction[CommandParser]) -> None:
    """Add ``oauth-setup``."""
    parser = subcommands.add_parser(
        "oauth-setup", help="Print the settings by which clients can log in by OAuth."
    )
    parser.add_argument(
        "site", nargs="?", default="https://shop.example.com", help="Where the site is, as a URL."
    )
    parser.add_argument(
        "--no-internet",
        action="store_true",
        help="The site's machines cannot fetch anything from the internet.",
    )
    # They would say that nothing is set, and stop.
    parser.set_defaults(run=oauth_setup, skip_checks=True)


def oauth_setup(command: BaseCommand, options: dict[str, Any]) -> None:
    """Print what to paste to stdout, and what else to do to stderr."""
    if not apps.is_installed("oauth2_provider"):
        raise CommandError(
            "django-oauth-toolkit is not installed: pip install "
            "'django-mcp-endpoints[oauth-server]', and add \"oauth2_provider\" to INSTALLED_APPS."
        )
    site, fetches = options["site"].rstrip("/"), not options["no_internet"]
    text = SETTINGS.format(site=site, fetches=fetches, remark="" if fetches else REMARK)
    command.stdout.write(f"{text}\n{URLS}")
    for line in _more(fetches=fetches):
        command.stderr.write(line, command.style.NOTICE)


def _more(*, fetches: bool) -> list[str]:
    lines = [
        'Then "manage.py migrate", "manage.py check", and a page at LOGIN_URL for people to log in '
        "at.",
    ]
    if fetches:
        lines.append(
            "If the site's machines cannot fetch https://claude.ai/oauth/claude-code-client-metadata,"
            " run this again with --no-internet: clients that see CIMD_ENABLED do not try to "
            "register when their document cannot be fetched."
        )
    return lines


def prunable() -> list[CleanupRule]:
    """Let ``mcp prune`` remove what nobody will use any more."""
    if not apps.is_installed("oauth2_provider"):
        return []
    from .dot import leftovers  # noqa: PLC0415  it needs the models of django-oauth-toolkit

    return leftovers.rules()
