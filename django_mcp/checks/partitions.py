"""Checks of where the rows of tenants are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from django.apps import apps
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured

from ..partitions import Partitions, partitions
from .settings import are_settings_valid

PARTITION_HINT: Final = (
    "Name a subclass of django_mcp.partitions.Partitions, such as "
    '"django_mcp.contrib.tenants.TenantSchemas" for django-tenants.'
)
TENANTS_HINT: Final = (
    'Set it to "django_mcp.contrib.tenants.TenantSchemas". Without it a session of one tenant may '
    "be taken for one of another, and the bookkeeping finds no rows."
)


@register
def check_partitions(**kwargs: Any) -> list[CheckMessage]:
    """Check ``DJANGO_MCP["PARTITION"]``, and that it is there where tenants have schemas."""
    if not are_settings_valid():
        return []
    try:
        kind = partitions()
    except ImproperlyConfigured as error:
        return [Error(str(error), hint=PARTITION_HINT, id="django_mcp.E020")]
    if kind is not None:
        return list(kind.check())
    if apps.is_installed("django_tenants"):
        message = 'django_tenants is installed, and DJANGO_MCP["PARTITION"] is not set.'
        return [CheckWarning(message, hint=TENANTS_HINT, id="django_mcp.W020")]
    return []


def replaced_middleware() -> Collection[str]:
    """Return the middleware whose work is done at the mount by what ``PARTITION`` names."""
    return () if (kind := _valid()) is None else kind.middleware()


def _valid() -> Partitions | None:
    try:
        return partitions()
    except ImproperlyConfigured:
        return None
