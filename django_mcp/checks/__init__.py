"""System checks: what a site has forgotten, before its users find out.

``settings`` checks ``DJANGO_MCP`` and what it names, ``partitions`` where tenants' rows are,
``servers`` the servers in the URLconf, ``offers`` whether clients can take what they offer,
``apps`` the pages that clients show, ``site`` what lies around the endpoints: other URLs,
middleware, and whoever is let in, ``oauth`` whether clients find out where to log in, ``issuers``
what authorization servers call things. Importing this package registers all of them with Django,
which ``AppConfig.ready()`` does; nothing else imports it. ``docs/reference/checks.md`` lists the
ids.
"""

from __future__ import annotations

from .issuers import check_issuer_names
from .oauth import check_oauth, check_scopes, check_tokens
from .partitions import check_partitions
from .servers import check_servers
from .settings import check_settings
from .site import (
    KNOWN_MIDDLEWARE,
    REPLACEMENTS,
    check_call_context,
    check_middleware,
    check_openness,
    check_well_known,
)

__all__ = [
    "KNOWN_MIDDLEWARE",
    "REPLACEMENTS",
    "check_call_context",
    "check_issuer_names",
    "check_middleware",
    "check_oauth",
    "check_openness",
    "check_partitions",
    "check_scopes",
    "check_servers",
    "check_settings",
    "check_tokens",
    "check_well_known",
]
