"""URI templates (RFC 6570), read backwards: from a URI to the values that make it.

Expansion is the client's business. Matching is defined only where it is unambiguous, so the
modifiers ``*`` and ``:n`` are refused at registration.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from .errors import RegistrationError

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNRESERVED = r"[A-Za-z0-9\-._~%]"
_RESERVED = r"[A-Za-z0-9\-._~%:/?#\[\]@!$&'()*+,;=]"

#: operator: (first character, separator, named, allowed characters); RFC 6570, appendix A.
_OPERATORS = {
    "": ("", ",", False, _UNRESERVED),
    "+": ("", ",", False, _RESERVED),
    "#": ("#", ",", False, _RESERVED),
    ".": (".", ".", False, r"[A-Za-z0-9\-_~%]"),
    "/": ("/", "/", False, _UNRESERVED),
    "?": ("?", "&", True, _UNRESERVED),
    "&": ("&", "&", True, _UNRESERVED),
}


class URITemplate:
    """A template with at least one variable, or a plain URI with none."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.variables: tuple[str, ...] = ()
        self._pattern = re.compile(self._compile(), re.DOTALL)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables' values, percent-decoded, or ``None`` if ``uri`` is not of it."""
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        return {name: unquote(value) for name, value in found.groupdict().items() if value}

    def _compile(self) -> str:
        literals = _EXPRESSION.split(self.template)
        if any("{" in part or "}" in part for part in literals[::2]):
            raise self._refuse("braces do not match")
        parts = [
            self._expression(part) if index % 2 else re.escape(part)
            for index, part in enumerate(literals)
        ]
        return "".join(parts)

    def _expression(self, expression: str) -> str:
        operator = expression[0] if expression[:1] in "+#./?&" and expression else ""
        names = expression[len(operator) :].split(",")
        for name in names:
            self._add(name)
        first, separator, named, allowed = _OPERATORS[operator]
        if named:
            # Servers must not depend on the order of a query, but a template states one.
            pairs = (f"(?:[?&]{name}=(?P<{name}>{allowed}*))?" for name in names)
            return "".join(pairs)
        quantifier = "+" if operator else "+?"
        groups = (f"(?P<{name}>{allowed}{quantifier})" for name in names)
        return re.escape(first) + re.escape(separator).join(groups)

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
