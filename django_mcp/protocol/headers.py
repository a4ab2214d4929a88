"""HTTP headers that MCP gives a meaning to, as plain functions over their values."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

from .errors import ErrorCode, MCPError
from .messages import Request

PROTOCOL_VERSION: Final = "Mcp-Protocol-Version"
SESSION_ID: Final = "Mcp-Session-Id"
METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"
PARAMETER_PREFIX: Final = "Mcp-Param-"

#: 2026-07-28, basic/transports/streamable-http, "Standard Request Headers".
NAME_SOURCES: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

_SENTINEL = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}(?:\.0+)?")
#: What stands for itself, whatever it is.
_PLAIN = re.compile(r"[\x21-\x3c\x3e-\x7e][\x20-\x7e]*(?<! )")
_VISIBLE = re.compile(r"[\x20-\x7e\t]*")
# RFC 9110, section 5.6.4, would allow more in a quoted string, but RFC 6750, section 3, allows its
# own parameters printable ASCII only, and so can no line break split the header.
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
_ESCAPED = re.compile(r'(["\\])')


class Headers(Protocol):
    """Request headers, looked up without regard to case; repeated ones joined by commas."""

    def get(self, name: str, /) -> str | None:
        """Return the value of the header ``name``, or ``None`` where it was not sent."""


class StandardHeaders(Protocol):
    """The values of the headers that say what a request is about, as they were sent.

    2026-07-28, basic/transports/streamable-http, "Standard Request Headers".
    """

    protocol_version: str | None
    mcp_method: str | None
    mcp_name: str | None


def bearer_token(headers: Headers) -> str:
    """Return the bearer token of the ``Authorization`` header, or nothing.

    The scheme is case-insensitive (RFC 9110, section 11.1). The other two ways of RFC 6750 to send
    a token, in a form and in the URL, are left out: MCP allows the header only.
    """
    scheme, _, credential = (headers.get("Authorization") or "").partition(" ")
    return credential.strip(" ") if scheme.lower() == "bearer" else ""


def bearer_challenge(**parameters: str) -> str:
    """Return a ``Bearer`` challenge for ``WWW-Authenticate``, with these parameters in this order.

    RFC 9110, section 11.6.1; RFC 6750, section 3.

    >>> bearer_challenge(realm="shop", error="invalid_token")
    'Bearer realm="shop", error="invalid_token"'
    """
    quoted = (f"{name}={_quoted(value)}" for name, value in parameters.items())
    return f"Bearer {', '.join(quoted)}".rstrip()


def _quoted(value: str) -> str:
    printable = _UNPRINTABLE.sub("?", value)
    return '"' + _ESCAPED.sub(r"\\\1", printable) + '"'


def mismatch(message: str) -> MCPError:
    """Return the error for headers that do not say what the body says."""
    return MCPError(ErrorCode.HEADER_MISMATCH, f"Header mismatch: {message}")


def check_mirrored(request: Request, sent: StandardHeaders) -> None:
    """Check ``Mcp-Method`` and ``Mcp-Name`` against the body.

    2026-07-28, basic/transports/streamable-http, "Server Validation".
    """
    if sent.mcp_method != request.method:
        _check(METHOD, request.method, sent.mcp_method, encoded=False)
    source = NAME_SOURCES.get(request.method)
    if source is not None:
        expected, raw = request.params.get(source), sent.mcp_name
        if isinstance(expected, str) and (raw != expected or not _PLAIN.fullmatch(raw)):
            _check(NAME, expected, raw, encoded=True)


def check_parameters(
    paths: Mapping[str, tuple[str, ...]], arguments: Mapping[str, Any], headers: Headers
) -> None:
    """Check ``Mcp-Param-*`` headers against the arguments of a call.

    ``paths`` maps a header's name portion to the path of its property. 2026-07-28,
    basic/transports/streamable-http, "Server Behavior for Custom Headers".
    """
    for name, path in paths.items():
        header = PARAMETER_PREFIX + name
        expected = _value_at(path, arguments)
        raw = headers.get(header)
        if expected is None:
            if raw is not None:
                raise mismatch(f"{header} is set, but the body has no value for {'.'.join(path)}")
        elif raw is None:
            raise mismatch(f"{header} is missing")
        elif not _same(decode(header, raw), expected):
            raise mismatch(f"{header} does not match the value of {'.'.join(path)} in the body")


def decode(header: str, raw: str) -> str:
    """Return a mirrored header's value, decoded if it is wrapped in the Base64 sentinel.

    2026-07-28, basic/transports/streamable-http, "Value Encoding".
    """
    value = raw.strip(" \t")
    if not _VISIBLE.fullmatch(value):
        raise mismatch(f"{header} contains invalid characters")
    wrapped = _SENTINEL.fullmatch(value)
    if wrapped is None:
        return value
    try:
        return base64.b64decode(wrapped[1], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise mismatch(f"{header} is not valid Base64 of UTF-8 text") from None


def encode(value: str) -> str:
    """Return ``value`` as a mirrored header carries it; the reverse of :func:`decode`."""
    plain = _VISIBLE.fullmatch(value) and value == value.strip(" \t")
    if plain and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def mirror_parameters(
    paths: Mapping[str, tuple[str, ...]], arguments: Mapping[str, Any]
) -> dict[str, str]:
    """Return the ``Mcp-Param-*`` headers that a client sends with a call."""
    values = {name: _value_at(path, arguments) for name, path in paths.items()}
    return {
        PARAMETER_PREFIX + name: encode(
            json.dumps(value) if isinstance(value, bool) else str(value)
        )
        for name, value in values.items()
        if value is not None
    }


def _check(header: str, expected: str, raw: str | None, *, encoded: bool) -> None:
    if raw is None:
        raise mismatch(f"{header} is missing")
    value = decode(header, raw) if encoded else raw.strip(" \t")
    if value != expected:
        raise mismatch(f"{header} {value[:100]!r} does not match the body's {expected[:100]!r}")


def _value_at(path: Iterable[str], arguments: Any) -> Any:
    for key in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(key)
    return arguments


def _same(text: str, value: Any) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return bool(_INTEGER.fullmatch(text)) and int(text.partition(".")[0]) == value
    return bool(text == value)


@dataclass(frozen=True, slots=True)
class Acceptable:
    """Which of the two forms of an answer the client takes."""

    json: bool
    events: bool


@lru_cache(maxsize=64)
def acceptable(accept: str | None) -> Acceptable:
    """Read an ``Accept`` header (RFC 9110, section 12.5.1), honouring wildcards and q-values."""
    if accept is None or not accept.strip():
        return Acceptable(json=True, events=True)
    weights = dict(_media_ranges(accept))
    return Acceptable(
        json=_weight(weights, "application", "json") > 0,
        events=_weight(weights, "text", "event-stream") > 0,
    )


def _media_ranges(accept: str) -> Iterable[tuple[str, float]]:
    for entry in accept.split(","):
        media, *parameters = (part.strip().lower() for part in entry.split(";"))
        yield media, _quality(parameters)


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


def _weight(weights: Mapping[str, float], kind: str, subtype: str) -> float:
    for media in (f"{kind}/{subtype}", f"{kind}/*", "*/*"):
        if media in weights:
            return weights[media]
    return 0.0


@lru_cache(maxsize=64)
def is_json(content_type: str | None) -> bool:
    """Return whether a body's ``Content-Type`` says JSON."""
    return (content_type or "").split(";")[0].strip().lower() == "application/json"
