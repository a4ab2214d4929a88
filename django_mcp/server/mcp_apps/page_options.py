"""What a host is told of a page: what it may load, and what it would like."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ..errors import RegistrationError
from ..ui_extension import checked_uri

CSP_MEMBERS: Final = {
    "connect_domains": "connectDomains",
    "resource_domains": "resourceDomains",
    "frame_domains": "frameDomains",
    "base_uri_domains": "baseUriDomains",
}
"""The keys of ``csp=``, and their names in the protocol."""

_PERMISSIONS: Final = {
    "camera": "camera",
    "microphone": "microphone",
    "geolocation": "geolocation",
    "clipboard_write": "clipboardWrite",
}

# Nothing else may get into the header that a host makes of it: no path, no blank, no semicolon.
_ORIGIN: Final = re.compile(r"(https?|wss?)://(\*\.)?[A-Za-z0-9.-]+(:(\d{1,5}|\*))?")


def ui_of_page(
    uri: str,
    csp: Mapping[str, Sequence[str]] | None,
    browser_permissions: Collection[str],
    prefers_border: bool | None,
    domain: str | None,
) -> dict[str, Any]:
    """Return ``_meta.ui`` of a page (2026-01-26, "UI Resource Format")."""
    label = f"mcp.app({uri!r})"
    checked_uri(uri, label)
    ui: dict[str, Any] = {}
    if csp:
        ui["csp"] = {
            _member(key, label): [_origin(each, key, label) for each in _several(key, given, label)]
            for key, given in csp.items()
        }
    if browser_permissions:
        ui["permissions"] = {_permission(each, label): {} for each in browser_permissions}
    if prefers_border is not None:
        ui["prefersBorder"] = prefers_border
    if domain is not None:
        ui["domain"] = domain
    return ui


def _member(key: str, label: str) -> str:
    if key not in CSP_MEMBERS:
        raise RegistrationError(f"{label}: csp= has {key!r}; it takes {', '.join(CSP_MEMBERS)}.")
    return CSP_MEMBERS[key]


def _several(key: str, given: Sequence[str], label: str) -> Sequence[str]:
    if isinstance(given, str):
        raise RegistrationError(f'{label}: csp= takes several {key}, as in ["{given}"].')
    return given


def _origin(given: str, key: str, label: str) -> str:
    if not _ORIGIN.fullmatch(given):
        raise RegistrationError(
            f"{label}: csp= has {given!r} in {key}, which is no origin. Write scheme and host "
            'without a path, as in "https://api.example.com" or "https://*.example.com".'
        )
    return given


def _permission(given: str, label: str) -> str:
    if given not in _PERMISSIONS:
        raise RegistrationError(
            f"{label}: browser_permissions= has {given!r}; it takes {', '.join(_PERMISSIONS)}."
        )
    return _PERMISSIONS[given]
