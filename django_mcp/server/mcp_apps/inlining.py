"""Static files of the site, written into a page: it has no address from which it could load any."""

from __future__ import annotations

import base64
import mimetypes
import posixpath
import re
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from django.contrib.staticfiles import finders
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from .rendering import PageError

_URL: Final = re.compile(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^"')\s]+))\s*\)""")
_STYLE_END: Final = re.compile("</(style)", re.IGNORECASE)
_SCRIPT_END: Final = re.compile("<(/script|!--)", re.IGNORECASE)
"""What would end a script; in a string of it a backslash changes nothing."""
_FONTS: Final = (".eot", ".otf", ".ttf", ".woff", ".woff2")


def style_element(name: str) -> SafeString:
    """Return a style sheet of the site as an element, with the pictures that it names."""
    sheet = _text(name)
    if re.search(r"@import\b", sheet):
        raise PageError(
            f"The style sheet {name!r} imports another one, which a page of an app cannot load. "
            "Give that one a tag of its own, in front of this one."
        )
    return as_style(_URL.sub(lambda match: _inlined(match, name), sheet))


def script_element(name: str) -> SafeString:
    """Return a script of the site as an element."""
    return as_script(_text(name))


def data_uri(name: str) -> str:
    """Return a file of the site as a URI that holds it."""
    kind = mimetypes.guess_type(name)[0]
    if kind is None:
        raise PageError(f"Nobody knows what kind of file {name!r} is. Give it an ending that says.")
    return f"data:{kind};base64,{base64.b64encode(_found(name).read_bytes()).decode('ascii')}"


def as_style(text: str) -> SafeString:
    """Return an element with a style sheet, which nothing in the sheet can end."""
    safe = _STYLE_END.sub(r"<\\/\1", text)
    return mark_safe(f"<style>{safe}</style>")


def as_script(text: str, **data: str) -> SafeString:
    """Return an element with a script, which nothing in the script can end.

    ``data`` are attributes, which the script finds in its ``dataset``.
    """
    safe = _SCRIPT_END.sub(r"<\\\1", text)
    attributes = mark_safe("").join(
        format_html(' data-{}="{}"', key.replace("_", "-"), value) for key, value in data.items()
    )
    return mark_safe(f"<script{attributes}>{safe}</script>")


@lru_cache(maxsize=8)
def own_script(name: str) -> str:
    """Return a script of this package, without the comments that take a line."""
    lines = _own(name).splitlines()
    kept = (line for line in lines if not line.lstrip().startswith("//"))
    return "\n".join(filter(None, (line.strip() for line in kept)))


@lru_cache(maxsize=8)
def own_style(name: str) -> str:
    """Return a style sheet of this package, likewise."""
    sheet = re.sub(r"/\*.*?\*/", "", _own(name), flags=re.DOTALL)
    return "\n".join(filter(None, (line.strip() for line in sheet.splitlines())))


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _inlined(match: re.Match[str], sheet: str) -> str:
    url = next(filter(None, match.groups()), "")
    parts = urlsplit(url)
    if parts.scheme or parts.netloc or not parts.path:
        return match[0]
    path = unquote(parts.path)
    if path.lower().endswith(_FONTS):
        raise PageError(
            f"The style sheet {sheet!r} names the font {url!r}, and hosts let pages load no font "
            "that is written into them. Use those of the host, by var(--font-sans), or name the "
            "font by a URL whose origin is in csp=."
        )
    return f'url("{data_uri(posixpath.normpath(posixpath.join(posixpath.dirname(sheet), path)))}")'


def _text(name: str) -> str:
    try:
        return _found(name).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise PageError(f"The static file {name!r} is no text in UTF-8.") from None


def _found(name: str) -> Path:
    path = finders.find(name)
    if path is None:
        raise PageError(
            f"There is no static file {name!r}. Put it into the folder static of an app, or "
            "correct the name; it is looked for as `manage.py findstatic` does."
        )
    return Path(path)
