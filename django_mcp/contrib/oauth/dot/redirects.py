"""Where clients that have registered themselves may have people sent back to."""

from __future__ import annotations

from urllib.parse import urlsplit

from oauth2_provider.settings import oauth2_settings

from ..client_documents import DocumentRefused, check_redirect_uri


def objection_to(uri: object) -> str:
    """Return what speaks against a URI, or nothing.

    2026-07-28, basic/authorization/security-considerations, "Communication Security": HTTPS, or
    this machine. Editors have schemes of their own (RFC 8252, section 7.1), which the site lists in
    ``ALLOWED_REDIRECT_URI_SCHEMES``.
    """
    try:
        check_redirect_uri(uri)
    except DocumentRefused as refused:
        return str(refused)
    scheme = urlsplit(str(uri)).scheme
    if scheme not in oauth2_settings.ALLOWED_REDIRECT_URI_SCHEMES:
        return f"The redirect_uri has the scheme {scheme[:40]!r}, which is not allowed here"
    return ""


def place_of(uri: str) -> str:
    """Return where a URI leads, as people can tell it from others: a host, or a scheme."""
    parts = urlsplit(uri)
    return parts.netloc if parts.scheme in ("https", "http") else f"{parts.scheme}:"
