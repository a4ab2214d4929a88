"""The default server, ``mcp``: its identity comes from the settings, or else from the site."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from django.conf import settings

from ..conf import get_settings
from .primitives import LazyText
from .registry import MCPServer

UNKNOWN: Final = "0"
"""What is said where nothing is known: the protocol asks for a version."""


class DefaultServer(MCPServer):
    """A server whose identity is a matter of settings, read live."""

    @property
    def name(self) -> str:
        """``DJANGO_MCP["SERVER_NAME"]``."""
        return get_settings().server_name

    @property
    def version(self) -> str:
        """``DJANGO_MCP["SERVER_VERSION"]``; without it, that of the site."""
        return get_settings().server_version or site_version()

    @property
    def _given_instructions(self) -> LazyText | None:
        """``DJANGO_MCP["INSTRUCTIONS"]``."""
        return get_settings().instructions or None

    @property
    def scopes(self) -> tuple[str, ...]:
        """``DJANGO_MCP["BASE_SCOPES"]``."""
        return get_settings().base_scopes

    @property
    def structured_text(self) -> bool:
        """``DJANGO_MCP["STRUCTURED_TEXT"]``."""
        return get_settings().structured_text


def site_version() -> str:
    """Return the version of the package that ``ROOT_URLCONF`` is in, as well as it is known.

    That of this package, or of Django, would say nothing of what the site offers, would not change
    when that does, and would tell strangers which known faults to try.
    """
    urlconf = getattr(settings, "ROOT_URLCONF", "")
    name = urlconf if isinstance(urlconf, str) else getattr(urlconf, "__name__", "")
    return version_of(name.partition(".")[0])


@lru_cache(maxsize=16)
def version_of(package: str) -> str:
    """Return what a package says itself, as ``__version__``, or what it was installed as."""
    try:
        module = import_module(package)
    except (ImportError, ValueError):
        return UNKNOWN
    said = getattr(module, "__version__", None)
    if isinstance(said, str) and said:
        return said
    places = [Path(each).resolve() for each in getattr(module, "__path__", ())]
    with suppress(PackageNotFoundError):
        installed = distribution(package)
        if any(_holds(installed, package, place) for place in places):
            return installed.version
    return UNKNOWN


def _holds(installed: Distribution, package: str, place: Path) -> bool:
    """Return whether the package comes from there, and not from another one of the same name."""
    if Path(str(installed.locate_file(package))).resolve() == place:
        return True
    # Installed in place, as `pip install -e .` and `uv sync` do.
    url = json.loads(installed.read_text("direct_url.json") or "{}").get("url", "")
    parts = urlsplit(url)
    root = Path(url2pathname(parts.path)).resolve()
    return parts.scheme == "file" and place.is_relative_to(root)


mcp = DefaultServer("")
