"""Where clients know the site to be, as ``BASE_URL`` says: behind a proxy requests do not.

With tenants, each at a host of its own, a star in such a URL stands for the first part of the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

_DEFAULT_PORTS: Final = {"https": ":443", "http": ":80"}
_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
"""One part of a host (RFC 1123, section 2.1)."""


def nearest_first(bases: Iterable[str], host: str) -> list[str]:
    """Return base URLs, that at ``host`` first, and the others in their order.

    ``host`` is as a request named it, perhaps with a port, and has been checked. The scheme may be
    another one behind a proxy.
    """
    return sorted(all_at_host(bases, host), key=lambda base: not _is_at(base, host.lower()))


def all_at_host(urls: Iterable[str], host: str) -> list[str]:
    """Return URLs of the settings as they are for a request to a host, which has been checked.

    A URL whose star can be no part of the host is left out.
    """
    return [found for each in urls if (found := at_host(each, host))]


def at_host(url: str, host: str) -> str:
    """Return one such URL; empty if it is left out."""
    if "*" not in url:
        return url
    scheme, _, rest = url.partition("://*")
    common, slash, path = rest.partition("/")
    host, common = host.lower().removesuffix(_DEFAULT_PORTS[scheme]), common.lower()
    is_below = host.endswith(common) and _LABEL.fullmatch(host.removesuffix(common))
    return f"{scheme}://{host}{slash}{path}" if is_below else ""


def _is_at(base: str, host: str) -> bool:
    parts = urlsplit(base.lower())
    default = _DEFAULT_PORTS[parts.scheme]
    return parts.netloc.removesuffix(default) == host.removesuffix(default)
