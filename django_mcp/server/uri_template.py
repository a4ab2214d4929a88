"""URI templates (RFC 6570), read backwards too: from a URI to the values that make it.

Matching is defined only where it is unambiguous, so the modifiers ``*`` and ``:n`` are refused at
registration. What a client should have percent-encoded and has not is accepted where it cannot be
taken for a delimiter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final
from urllib.parse import quote, unquote

from .errors import RegistrationError

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")

#: operator: (first character, separator, named, allowed characters); RFC 6570, appendix A.
_OPERATORS = {
    "": ("", ",", False, "[^/?#,]"),
    "+": ("", ",", False, "."),
    "#": ("#", ",", False, "."),
    ".": (".", ".", False, "[^/?#,.]"),
    "/": ("/", "/", False, "[^/?#,]"),
    "?": ("?", "&", True, "[^&#]"),
    "&": ("&", "&", True, "[^&#]"),
}

_RESERVED = ":/?#[]@!$&'()*+,;="
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")

#: Operators whose values are not marked off by a character of their own, by how much they take.
_WIDTHS = {"": 0, "+": 1}

MAX_LENGTH: Final = 4096
"""Of a URI that is matched. The time it takes may grow with the square of the length."""


class URITemplate:
    """A template with at least one variable, or a plain URI with none."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.variables: tuple[str, ...] = ()
        self._pattern = re.compile(self._compile(), re.DOTALL)

    @property
    def rank(self) -> tuple[bool, int]:
        """Where the template stands among those that match: the most particular one is first."""
        literals = _EXPRESSION.split(self.template)[::2]
        return any(mark in self.template for mark in ("{+", "{#")), -sum(map(len, literals))

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables' values, percent-decoded, or ``None`` if ``uri`` is not of it."""
        found = self._pattern.fullmatch(uri) if len(uri) <= MAX_LENGTH else None
        if found is None:
            return None
        return {name: unquote(value) for name, value in found.groupdict().items() if value}

    def expand(self, values: Mapping[str, Any]) -> str:
        """Return the URI of ``values``; variables that have none are left out."""
        texts = {
            name: _text(values[name]) for name in self.variables if values.get(name) is not None
        }
        return _EXPRESSION.sub(lambda found: _expand(found[1], texts), self.template)

    def _compile(self) -> str:
        if not _SCHEME.match(self.template):
            raise self._refuse("begin with a scheme, for example notes://")
        parts = _EXPRESSION.split(self.template)
        if any("{" in part or "}" in part for part in parts[::2]):
            raise self._refuse("braces do not match")
        pattern = re.escape(parts[0])
        # Each expression, the literal after it, and the expression after that.
        followers = [*parts[3::2], None]
        for expression, literal, following in zip(
            parts[1::2], parts[2::2], followers, strict=False
        ):
            matched = self._expression(expression) + re.escape(literal)
            commits = self._commits(expression, literal, following)
            pattern += f"(?>{matched})" if commits else matched
        return pattern

    def _commits(self, expression: str, literal: str, following: str | None) -> bool:
        """Return whether the first place where ``literal`` stands may be taken for good.

        It may if what follows takes at least the same characters. Without that, a URI of hyphens
        for ``{year}-{month}-{day}.json`` would be tried in all its ways, which are too many.
        """
        if following is None or (wider := _WIDTHS.get(_operator(following))) is None:
            return False
        if not literal:
            raise self._refuse(f"nothing stands between {{{expression}}} and {{{following}}}")
        return _WIDTHS.get(_operator(expression), wider + 1) <= wider

    def _expression(self, expression: str) -> str:
        operator = _operator(expression)
        names = expression[len(operator) :].split(",")
        for name in names:
            self._add(name)
        first, separator, named, allowed = _OPERATORS[operator]
        if named:
            # Servers must not depend on the order of a query, but a template states one.
            pairs = (f"(?:[?&]{name}=(?P<{name}>{allowed}*))?" for name in names)
            return "".join(pairs)
        groups = [f"(?P<{name}>{allowed}+?)" for name in names]
        if not first:
            return re.escape(separator).join(groups)
        # RFC 6570, section 3.2.1: what has no value is left out, its separator with it.
        pattern = ""
        for group in reversed(groups[1:]):
            pattern = f"(?:{re.escape(separator)}{group}{pattern})?"
        return f"(?:{re.escape(first)}{groups[0]}{pattern})?"

    def _add(self, name: str) -> None:
        if not _VARIABLE.fullmatch(name):
            raise self._refuse(
                f"{{{name}}} is not a plain variable; the modifiers * and :n are not supported"
            )
        if name in self.variables:
            raise self._refuse(f"the variable {name!r} stands twice")
        self.variables = (*self.variables, name)

    def _refuse(self, reason: str) -> RegistrationError:
        return RegistrationError(f"URI template {self.template!r}: {reason}")


def canonical(uri: str) -> str:
    """Return the spelling by which URIs are compared: that of RFC 3986, section 6.2.2.

    Clients differ in what they percent-encode and how.
    """
    uri = _ENCODED.sub(lambda found: _decode_unreserved(found[0]), uri)
    return quote(uri, safe=_RESERVED + "%", errors="surrogatepass")


def _decode_unreserved(encoded: str) -> str:
    character = chr(int(encoded[1:], 16))
    return character if _UNRESERVED.fullmatch(character) else encoded.upper()


def _text(value: Any) -> str:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _expand(expression: str, values: Mapping[str, str]) -> str:
    operator = _operator(expression)
    first, separator, named, _ = _OPERATORS[operator]
    # RFC 6570, sections 3.2.3 and 3.2.4: reserved characters stand as they are.
    safe = _RESERVED if operator in ("+", "#") else ""
    names = [name for name in expression[len(operator) :].split(",") if name in values]
    parts = [quote(values[name], safe=safe) for name in names]
    if named:
        parts = [f"{name}={part}" for name, part in zip(names, parts, strict=True)]
    return first + separator.join(parts) if parts else ""


def _operator(expression: str) -> str:
    return expression[:1] if expression[:1] in _OPERATORS else ""
