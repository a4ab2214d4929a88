"""URI templates (RFC 6570), read backwards too: from a URI to the values that make it.

Matching is defined only where it is unambiguous, so the modifiers ``*`` and ``:n`` are refused at
registration. What a client should have percent-encoded and has not is accepted where it cannot be
taken for a delimiter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Final
from urllib.parse import quote, unquote

from .uri_matching import ANY, Literal, Skip, Step, Text, Value, match, without


class InvalidURITemplate(ValueError):
    """A URI template by which URIs cannot be matched; the message has the cure."""


_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")

#: operator: (first character, separator, named, allowed characters); RFC 6570, appendix A.
_OPERATORS: Final = {
    "": ("", ",", False, without("/?#,")),
    "+": ("", ",", False, ANY),
    "#": ("#", ",", False, ANY),
    ".": (".", ".", False, without("/?#,.")),
    "/": ("/", "/", False, without("/?#,")),
    "?": ("?", "&", True, without("&#")),
    "&": ("&", "&", True, without("&#")),
}

_RESERVED = ":/?#[]@!$&'()*+,;="
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
#: What need not be percent-encoded, or is in small letters. Only that, for there may be much else.
_UNUSUAL = re.compile(
    "%(?:2[DE]|3[0-9]|[46][1-9A-F]|5[0-9AF]|7[0-9AE]|[0-9A-Fa-f][a-f]|[a-f][0-9A-F])"
)

MAX_LENGTH: Final = 4096
"""Of a URI that is matched with templates."""


class URITemplate:
    """A template with at least one variable, or a plain URI with none."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.variables: tuple[str, ...] = ()
        literals = self._literals()
        self.beginning = literals[0].encode("utf-8", "surrogatepass")
        """What stands before its first variable."""
        self._steps = tuple(self._compile(literals))
        self.rank = (any(mark in template for mark in ("{+", "{#")), -sum(map(len, literals)))
        """Where it stands among those that match: the most particular one is first."""

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables' values, percent-decoded, or ``None`` if ``uri`` is not of it."""
        return self.match_text(Text(uri)) if len(uri) <= MAX_LENGTH else None

    def match_text(self, text: Text) -> dict[str, str] | None:
        """Do the same for several templates, which look at a URI together."""
        if not text.data.startswith(self.beginning):
            return None
        found = match(self._steps, text)
        if found is None:
            return None
        return {name: unquote(value) for name, value in found.items() if value}

    def expand(self, values: Mapping[str, Any]) -> str:
        """Return the URI of ``values``; variables that have none are left out."""
        texts = {
            name: _text(values[name]) for name in self.variables if values.get(name) is not None
        }
        return _EXPRESSION.sub(lambda found: _expand(found[1], texts), self.template)

    def _literals(self) -> list[str]:
        if not _SCHEME.match(self.template):
            raise self._refuse("begin with a scheme, for example notes://")
        literals = _EXPRESSION.split(self.template)[::2]
        if any("{" in literal or "}" in literal for literal in literals):
            raise self._refuse("braces do not match")
        return literals

    def _compile(self, literals: Sequence[str]) -> Iterator[Step]:
        yield Literal.of(literals[0])
        before = ""
        for expression, literal in zip(
            _EXPRESSION.findall(self.template), literals[1:], strict=True
        ):
            if before and _operator(expression) in ("", "+"):
                raise self._refuse(f"nothing stands between {{{before}}} and {{{expression}}}")
            yield from self._expression(expression)
            yield Literal.of(literal)
            before = "" if literal else expression

    def _expression(self, expression: str) -> list[Step]:
        operator = _operator(expression)
        names = expression[len(operator) :].split(",")
        for name in names:
            self._add(name)
        first, separator, named, allowed = _OPERATORS[operator]
        if allowed == ANY and len(names) > 1:
            raise self._refuse(_no_end_in_sight(expression, operator, names))
        if named:
            # Servers must not depend on the order of a query, but a template states one.
            return [step for name in names for step in _pair(name, allowed)]
        values = [Value(name, allowed) for name in names]
        if not first:
            return _separated(values, separator)
        # RFC 6570, section 3.2.1: what has no value is left out, its separator with it.
        steps: list[Step] = []
        for number in range(len(values) - 1, -1, -1):
            begin = Literal.of(separator if number else first)
            steps = [Skip(2 + len(steps)), begin, values[number], *steps]
        return steps

    def _add(self, name: str) -> None:
        if not _VARIABLE.fullmatch(name):
            raise self._refuse(
                f"{{{name}}} is not a plain variable; the modifiers * and :n are not supported"
            )
        if name in self.variables:
            raise self._refuse(f"the variable {name!r} stands twice")
        self.variables = (*self.variables, name)

    def _refuse(self, reason: str) -> InvalidURITemplate:
        return InvalidURITemplate(f"URI template {self.template!r}: {reason}")


def canonical(uri: str) -> str:
    """Return the spelling by which URIs are compared: that of RFC 3986, section 6.2.2.

    Clients differ in what they percent-encode and how.
    """
    uri = _UNUSUAL.sub(lambda found: _decode_unreserved(found[0]), uri)
    return quote(uri, safe=_RESERVED + "%", errors="surrogatepass")


def _no_end_in_sight(expression: str, operator: str, names: Sequence[str]) -> str:
    cure = f"take them as one, for example {{#{names[0]}}}"
    if operator == "+":
        apart = "/".join(f"{{+{name}}}" for name in names)
        cure = f"give each an expression of its own, for example {apart}"
    return f"the values of {{{expression}}} may contain the comma that stands between them; {cure}"


def _pair(name: str, allowed: bytes) -> list[Step]:
    begin = Literal((b"?&", *Literal.of(f"{name}=").characters))
    return [Skip(2), begin, Value(name, allowed, may_be_empty=True)]


def _separated(values: Sequence[Value], separator: str) -> list[Step]:
    steps: list[Step] = [values[0]]
    for value in values[1:]:
        steps += [Literal.of(separator), value]
    return steps


@cache
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
