"""What no event may show: session ids, bearer tokens, request states, and strange ``_meta``.

They are hidden by their names, wherever something has kept its names; and by their values, which a
call knows, and the frames of a traceback.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any, Final

from django.http import HttpRequest
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)

from ...http.mount_request import MountRequest
from ...http.request import SESSION_ID_VARIABLE, Caller
from ...http.views import ViewRequest
from ...protocol import headers
from ...protocol.messages import Request
from ...server.exchange import Exchange

FILTERED: Final = "[Filtered]"
"""What Sentry writes itself."""
SHORTEST: Final = 8
"""Characters from which on a value is looked for everywhere: shorter ones are words, too."""
MOST_FRAMES: Final = 200
"""Frames that are searched, the innermost first."""

NAMES: Final = frozenset(
    {
        "authorization",
        "http-authorization",
        "proxy-authorization",
        "http-proxy-authorization",
        "mcp-session-id",
        "http-mcp-session-id",
        "requeststate",
        "request-state",
    }
)
"""Names of what is secret: lower case, with hyphens."""

META: Final = frozenset(
    {
        CLIENT_CAPABILITIES_META_KEY,
        CLIENT_INFO_META_KEY,
        LOG_LEVEL_META_KEY,
        PROTOCOL_VERSION_META_KEY,
        "progressToken",
        "traceparent",
        "tracestate",
    }
)
"""Members of ``_meta`` that are known to be harmless. Anybody may add others."""

_BESIDE_NAME: Final = re.compile(
    r"""((?:mcp[-_]session[-_]id|authorization|request_?state)\\*["']?\s*[:=,]\s*b?\\*["'])"""
    r"""[^"'\\]+""",
    re.IGNORECASE,
)
_BEARER: Final = re.compile(r"\b(bearer\s+)[\w\-.~+/]+=*", re.IGNORECASE)


def secrets_of(exchange: Exchange) -> frozenset[str]:
    """Return the secrets that have come with a request."""
    return frozenset(_long_ones(_of_exchange(exchange)))


def secrets_in_frames(hint: Mapping[str, Any]) -> frozenset[str]:
    """Return the secrets of the requests that a traceback shows, or that are answered here."""
    raised = hint.get("exc_info")
    frames = [*_frames_of(raised[2] if raised else None)][-MOST_FRAMES:]
    frame: FrameType | None = sys._getframe()
    while frame is not None and len(frames) < 2 * MOST_FRAMES:
        frames.append(frame)
        frame = frame.f_back
    found: list[str] = []
    for each in frames:
        for value in list(each.f_locals.values()):
            found += _of(value)
    return frozenset(_long_ones(found))


def hidden(event: Any, secrets: Iterable[str]) -> Any:
    """Return an event, which is plain JSON, without what is secret in it."""
    # Its own _meta is Sentry's, and says what was cut off where.
    own = event.pop("_meta", None)
    known = {*secrets, *_long_ones(_named_in(event))}
    clean = _without(event, sorted(_spellings(known), key=len, reverse=True))
    if own is not None:
        event["_meta"] = clean["_meta"] = own
    return clean


def _of(value: Any) -> Iterator[str]:
    """Yield the secrets of a local variable."""
    if isinstance(value, Exchange):
        yield from _of_exchange(value)
    elif isinstance(value, Caller):
        yield from _of_headers(value.request.headers)
    elif isinstance(value, (MountRequest, ViewRequest)):
        yield from _of_headers(value.headers)
    elif isinstance(value, Request):
        yield from _of_request(value)
    elif isinstance(value, HttpRequest) and "META" in value.__dict__:
        yield str(value.META.get(SESSION_ID_VARIABLE, ""))
        yield from _of_authorization(value.META.get("HTTP_AUTHORIZATION", ""))


def _of_exchange(exchange: Exchange) -> Iterator[str]:
    yield from _of_headers(exchange.http.headers)
    yield from _of_request(exchange.request)


def _of_headers(given: headers.Headers) -> Iterator[str]:
    yield given.get(headers.SESSION_ID) or ""
    yield from _of_authorization(given.get("Authorization") or "")


def _of_authorization(header: str) -> Iterator[str]:
    yield header
    yield header.partition(" ")[2]


def _of_request(request: Request) -> Iterator[str]:
    yield from _texts(request.params.get("requestState"))
    yield from _texts([value for key, value in request.meta.items() if key not in META])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _long_ones(secrets: Iterable[str]) -> Iterator[str]:
    return (each for each in secrets if len(each) >= SHORTEST and each != FILTERED)


def _spellings(secrets: Iterable[str]) -> set[str]:
    """Return the secrets as they stand in texts, in JSON and in what ``repr()`` returns."""
    found = set()
    for each in secrets:
        in_bytes = repr(each.encode("utf-8", "surrogatepass"))[2:-1]
        found |= {each, repr(each)[1:-1], in_bytes, json.dumps(each)[1:-1]}
        found.add(json.dumps(each, ensure_ascii=False)[1:-1])
    return found


def _frames_of(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def _is_secret(name: Any) -> bool:
    """Return whether what has this name is hidden; of bytes Sentry shows the ``repr()``."""
    if not isinstance(name, str):
        return False
    plain = name.removeprefix("b").strip("\"'").lower().replace("_", "-")
    # Attributes of spans have the names of headers at their end.
    return plain.rpartition(".")[2] in NAMES


def _is_pair(value: list[Any]) -> bool:
    return len(value) == 2 and _is_secret(value[0])


def _named_in(value: Any) -> Iterator[str]:
    """Yield the values that stand beside a name of what is secret."""
    if isinstance(value, dict):
        for name, member in value.items():
            if _is_secret(name):
                yield from map(_bare, _texts(member))
            elif name == "_meta" and isinstance(member, dict):
                yield from _texts([each for key, each in member.items() if key not in META])
            else:
                yield from _named_in(member)
    elif isinstance(value, list):
        if _is_pair(value):
            yield from map(_bare, _texts(value[1]))
        for item in value:
            yield from _named_in(item)


def _bare(text: str) -> str:
    """Return a text without the quotes that ``repr()`` has put around it."""
    return re.sub(r"""^b?(["'])(.*)\1$""", r"\2", text, flags=re.DOTALL)


def _without(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        return _text_without(value, secrets)
    if isinstance(value, dict):
        return {name: _member_without(name, member, secrets) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_without(item, secrets) for item in value]
        return [items[0], FILTERED] if _is_pair(items) else items
    return value


def _member_without(name: Any, member: Any, secrets: list[str]) -> Any:
    if _is_secret(name) and member is not None:
        return FILTERED
    if name == "_meta" and isinstance(member, dict):
        member = {key: each if key in META else FILTERED for key, each in member.items()}
    return _without(member, secrets)


def _text_without(text: str, secrets: list[str]) -> str:
    for each in secrets:
        text = text.replace(each, FILTERED)
    text = _BEARER.sub(rf"\1{FILTERED}", _BESIDE_NAME.sub(rf"\1{FILTERED}", text))
    # Sentry may have cut off the rest.
    bare = text.removesuffix("...")
    for each in secrets:
        for length in range(min(len(each), len(bare)), SHORTEST - 1, -1):
            if bare.endswith(each[:length]):
                return f"{bare[:-length]}{FILTERED}"
    return text
