"""What is known of authorization servers: where they are to be asked, and their keys.

A process asks each once, and again from time to time. What strangers send, such as tokens that
name keys which do not exist, makes it ask no more often than every half minute.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from threading import Lock
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from ...conf import get_settings
from ...forks import PerProcess
from ...protocol.errors import Unavailable
from .fetching import TIMEOUT, FetchFailed, fetch_json

logger = logging.getLogger("django_mcp.contrib.oauth")

FRESH_SECONDS: Final = 600
"""For so long what was fetched is not fetched anew."""
USABLE_SECONDS: Final = 3600
"""For so long it is used while it cannot be fetched anew."""
PAUSE_SECONDS: Final = 30
"""So long after an attempt nothing is fetched, whatever tokens say."""
FIRST_PAUSE_SECONDS: Final = 5
"""The same where nothing has been fetched yet."""
MAX_KEYS: Final = 100

Keys = Mapping[str, Any]
"""The set of keys as the server publishes it (RFC 7517, section 5)."""


class Issuer:
    """One authorization server, by its identifier. Safe to use from any thread."""

    def __init__(self, identifier: str) -> None:
        self.identifier = identifier
        self._lock = Lock()
        self._metadata: dict[str, Any] = {}
        self._keys: list[Keys] = []
        self._fetched = float("-inf")
        self._tried = float("-inf")

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the server says of itself; raises :class:`Unavailable` where nothing is known."""
        self._keep_fresh()
        return self._metadata

    @property
    def keys(self) -> list[Keys]:
        """Its keys; raises :class:`Unavailable` where none are known."""
        self._keep_fresh()
        return self._keys

    def look_for_newer(self) -> bool:
        """Fetch everything anew, unless that has been tried lately; return whether it was."""
        known = self._is_known()
        began = monotonic()
        if began - self._tried < (PAUSE_SECONDS if known else FIRST_PAUSE_SECONDS):
            return False
        # Where nothing is known everybody has to wait for it; else nobody waits for another.
        if not self._lock.acquire(timeout=4 * TIMEOUT if not known else 0):
            return False
        try:
            if self._tried >= began:
                return True  # by another thread, meanwhile
            self._tried = monotonic()
            self._metadata = metadata = discover(self.identifier)
            self._keys = _published_keys(metadata) if "jwks_uri" in metadata else []
            self._fetched = monotonic()
        except FetchFailed as error:
            logger.warning("Nothing new is known of the issuer %s: %s.", self.identifier, error)
            return False
        finally:
            self._lock.release()
        return True

    def _is_known(self) -> bool:
        return monotonic() - self._fetched < USABLE_SECONDS

    def _keep_fresh(self) -> None:
        if monotonic() - self._fetched >= FRESH_SECONDS:
            self.look_for_newer()
        if not self._is_known():
            raise Unavailable(
                f"The authorization server {self.identifier} cannot be reached; try again later",
                retry_after=FIRST_PAUSE_SECONDS,
            )


def discover(issuer: str) -> dict[str, Any]:
    """Return the metadata of an authorization server; raises :class:`FetchFailed`.

    Where a document does not say where the keys are, the next one counts as well: AuthKit's of
    RFC 8414 once had less than the one of OpenID Connect.
    """
    elsewhere = get_settings().issuer_metadata.get(issuer)
    found: dict[str, Any] = {}
    failures = []
    for url in [elsewhere] if elsewhere else metadata_urls(issuer):
        try:
            document = fetch_json("GET", url)
        except FetchFailed as error:
            failures.append(str(error))
            continue
        # RFC 8414, section 3.3: another one's metadata is not used.
        if document.get("issuer") == issuer:
            found = {**document, **found}
            if "jwks_uri" in found:
                break
        else:
            failures.append(f"{url} is about another issuer, {ascii(document.get('issuer'))[:200]}")
    if not found:
        raise FetchFailed("; ".join(failures))
    return found


def metadata_urls(issuer: str) -> list[str]:
    """Return where the metadata of an authorization server may be, in this order.

    2026-07-28, basic/authorization/authorization-server-discovery, "Authorization Server Metadata
    Discovery".

    >>> metadata_urls("https://id.example.com")[0]
    'https://id.example.com/.well-known/oauth-authorization-server'
    """
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [
        f"{origin}/.well-known/{name}{path}"
        for name in ("oauth-authorization-server", "openid-configuration")
    ]
    return [*urls, f"{origin}{path}/.well-known/openid-configuration"] if path else urls


def _published_keys(metadata: Mapping[str, Any]) -> list[Keys]:
    url = metadata["jwks_uri"]
    keys = fetch_json("GET", str(url)).get("keys")
    if not isinstance(keys, list):
        raise FetchFailed(f"{url} has no keys")
    return [each for each in keys[:MAX_KEYS] if isinstance(each, dict)]


_issuers: Final[PerProcess[dict[str, Issuer]]] = PerProcess(dict)


def issuer_of(identifier: str) -> Issuer:
    """Return what this process knows of one of the site's authorization servers."""
    known = _issuers()
    return known.get(identifier) or known.setdefault(identifier, Issuer(identifier))


def forget_issuers() -> None:
    """Forget what is known of all."""
    _issuers.forget()
