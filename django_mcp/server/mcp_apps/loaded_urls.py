"""What a page would load, and what of that its host will block.

Only what is written out is found: an address that a script puts together is not. A host's policy
decides in the end; this says beforehand what it will refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlsplit

from .page_options import CSP_MEMBERS

CONNECT: Final = "connect_domains"
RESOURCE: Final = "resource_domains"
FRAME: Final = "frame_domains"
BASE: Final = "base_uri_domains"

_ATTRIBUTES: Final = {
    ("audio", "src"): RESOURCE,
    ("base", "href"): BASE,
    ("iframe", "src"): FRAME,
    ("image", "href"): RESOURCE,
    ("img", "src"): RESOURCE,
    ("input", "src"): RESOURCE,
    ("link", "href"): RESOURCE,
    ("script", "src"): RESOURCE,
    ("source", "src"): RESOURCE,
    ("track", "src"): RESOURCE,
    ("use", "href"): RESOURCE,
    ("video", "poster"): RESOURCE,
    ("video", "src"): RESOURCE,
}
"""What an element loads, by its name and attribute."""
_LISTS: Final = (("img", "srcset"), ("source", "srcset"), ("link", "imagesrcset"))
_IN_LIST: Final = re.compile(r"([^\s,](?:\S*[^\s,])?)[^,]*")
"""One of a list of pictures: its address, in which there may be commas, and how wide it is."""
_NO_LOADING: Final = frozenset({"author", "canonical", "help", "license", "me", "next", "prev"})
"""Kinds of ``<link>`` that only say something."""

_IN_STYLE: Final = re.compile(
    r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^"')\s]+))\s*\)|@import\s+(?:"([^"]*)"|'([^']*)')"""
)
_CONNECTING: Final = re.compile(
    r"""\b(?:fetch|WebSocket|EventSource|sendBeacon)\(\s*(["'`])([^"'`$]+)\1"""
    r"""|\.open\(\s*["'`][A-Z]+["'`]\s*,\s*(["'`])([^"'`$]+)\3"""
)
_IMPORTING: Final = re.compile(
    r"""\bimport\s*\(?\s*(["'`])([^"'`$]+)\1|\bfrom\s*(["'])([a-z]+:[^"']+|[./][^"']*)\3"""
)

# As in CSP, where what is safe by encryption may stand for what is not.
_ALSO: Final = {"https": ("http",), "wss": ("ws",)}


def unreachable(html: str, csp: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return what a document would load and may not, each with the key of ``csp=`` that it needs.

    ``csp`` is ``_meta.ui.csp``.
    """
    finder = _Finder()
    finder.feed(html)
    finder.close()
    return [
        (url, key)
        for url, key in dict.fromkeys(finder.found)
        if not _is_allowed(url, csp.get(CSP_MEMBERS[key], ()))
    ]


class _Finder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name.rpartition(":")[2]: value or "" for name, value in attrs}
        self._inside = tag if tag in ("script", "style") else ""
        if tag == "script" and given.get("type", "").endswith("json"):
            self._inside = ""
        for name, value in given.items():
            key = _ATTRIBUTES.get((tag, name))
            if key is not None and not (tag == "link" and _only_says(given)):
                self.found.append((value.strip(), key))
            elif (tag, name) in _LISTS:
                self.found += ((match[1], RESOURCE) for match in _IN_LIST.finditer(value))
            elif name == "style":
                self.found += _in_style(value)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.found += _in_style(data)
        elif self._inside == "script":
            self.found += _in_script(data)


def _only_says(link: Mapping[str, str]) -> bool:
    return set(link.get("rel", "").lower().split()) <= _NO_LOADING


def _in_style(text: str) -> Iterator[tuple[str, str]]:
    for match in _IN_STYLE.finditer(text):
        yield next(filter(None, match.groups()), ""), RESOURCE


def _in_script(text: str) -> Iterator[tuple[str, str]]:
    for match in _CONNECTING.finditer(text):
        yield match[2] or match[4], CONNECT
    for match in _IMPORTING.finditer(text):
        yield match[2] or match[4], RESOURCE


def _is_allowed(url: str, origins: Sequence[str]) -> bool:
    if not url or url.startswith("#"):
        return True
    parts = urlsplit(url)
    if parts.scheme in ("data", "blob", "about"):
        return True
    # The page has no address of its own: what is relative leads nowhere, and no origin helps.
    return bool(parts.netloc) and any(_covers(each, url) for each in origins)


def _covers(origin: str, url: str) -> bool:
    allowed, asked = urlsplit(origin), urlsplit(url)
    scheme = asked.scheme or allowed.scheme
    if scheme != allowed.scheme and allowed.scheme not in _ALSO.get(scheme, ()):
        return False
    host, _, port = allowed.netloc.lower().partition(":")
    asked_host, _, asked_port = asked.netloc.lower().rpartition("@")[2].partition(":")
    if port != "*" and port != asked_port:
        return False
    if host.startswith("*."):
        return asked_host.endswith(host[1:])
    return asked_host == host
