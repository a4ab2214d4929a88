"""Documents of authorization servers over HTTP: bounded in time and size, and never redirected."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from django.views.decorators.debug import sensitive_variables

from ...conf import LOOPBACK

try:
    import httpx
except ImportError as error:
    raise ImportError(
        "django_mcp.contrib.oauth needs httpx. Install it: "
        "pip install 'django-mcp-endpoints[oauth]'"
    ) from error

TIMEOUT: Final = 5.0
"""Seconds that a server may take for each thing it does, and twice that for all."""
MAX_DOCUMENT_BYTES: Final = 512 * 1024


class FetchFailed(Exception):
    """Nothing that can be used has come; the text says why."""


@sensitive_variables()  # also of the library that is used
def fetch_json(
    method: str,
    url: str,
    *,
    auth: tuple[str, str] | None = None,
    data: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the object of JSON at ``url``, of an answer with status 200.

    Raises :class:`FetchFailed`. Only HTTPS is used, but for this machine.
    """
    parts = urlsplit(url)
    is_here = parts.hostname in LOOPBACK
    if parts.scheme != "https" and not (parts.scheme == "http" and is_here):
        raise FetchFailed(f"{url} is not HTTPS")
    try:
        # What stands in the environment about proxies is not for this machine.
        with httpx.Client(timeout=TIMEOUT, trust_env=not is_here) as http:
            body = _read(http, method, url, auth=auth, data=data)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise FetchFailed(f"{url} cannot be reached: {type(error).__name__}") from error
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FetchFailed(f"{url} has no JSON") from error
    if not isinstance(found, dict):
        raise FetchFailed(f"{url} has no object of JSON")
    return found


def _read(http: httpx.Client, method: str, url: str, **options: Any) -> bytes:
    until = time.monotonic() + 2 * TIMEOUT
    headers = {"Accept": "application/json"}
    body = bytearray()
    with http.stream(method, url, headers=headers, **options) as response:
        if response.status_code != 200:
            raise FetchFailed(f"{url} answers {response.status_code}")
        for piece in response.iter_bytes():
            body += piece
            if len(body) > MAX_DOCUMENT_BYTES or time.monotonic() > until:
                raise FetchFailed(f"{url} sends too much, or too slowly")
    return bytes(body)
