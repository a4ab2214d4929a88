"""Which era a message belongs to, and what it says about its sender."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, get_args

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    ClientCapabilities,
    Implementation,
    LoggingLevel,
)
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from . import headers
from .bounded import MAX_ITEMS, Validator
from .errors import ErrorCode, MCPError, invalid_params
from .messages import Batch, Invalid, Message, Notification, Request
from .versions import BY_NAME, LEGACY, MODERN, NEWEST_LEGACY, Era, Revision

LOG_LEVELS: Final[tuple[str, ...]] = get_args(LoggingLevel)
"""The levels of RFC 5424, least severe first."""

SHORT_BYTES: Final = 1_000
"""Bytes of what a client says of itself that are remembered as valid."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Sender:
    """What a client says of itself: in ``_meta`` of each request, or once in ``initialize``."""

    info: dict[str, Any] | None = None
    capabilities: dict[str, Any] = field(default_factory=dict)
    log_level: str | None = None


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A legacy session as user code sees it. The secret ``Mcp-Session-Id`` is not part of it."""

    id: str
    revision: Revision
    sender: Sender
    initialized: bool
    log_level: str
    """The least severe level that the client wants, from ``logging/setLevel``."""


def era_of(message: Message | Batch | Invalid, version_header: str | None) -> Era:
    """Return the era in which ``message`` is to be read.

    2026-07-28, basic/versioning, "Backward Compatibility with Initialization-Based Versions": the
    request's own metadata decides, then ``initialize``; the header decides only where the body
    says nothing.
    """
    if isinstance(message, (Request, Notification)) and PROTOCOL_VERSION_META_KEY in message.meta:
        return Era.MODERN
    if isinstance(message, Request) and message.method == "initialize":
        return Era.LEGACY
    return Era.MODERN if is_modern_name(version_header) else Era.LEGACY


def read_modern(request: Request, sent: headers.StandardHeaders) -> tuple[Revision, Sender]:
    """Check a modern request's metadata and its mirrored headers.

    The order matters: header and body are compared before anybody asks whether the version is
    supported (2026-07-28, basic/transports/streamable-http, "Protocol Version Header").
    """
    requested, header = request.meta.get(PROTOCOL_VERSION_META_KEY), sent.protocol_version
    if header is None or header != requested:
        _check_version(requested, header)
    revision = BY_NAME.get(requested)  # type: ignore[arg-type]
    if revision is None or not revision.modern:
        raise unsupported_version(str(requested))
    headers.check_mirrored(request, sent)
    return revision, _modern_sender(request)


def _check_version(requested: Any, header: str | None) -> None:
    if requested is None:
        raise invalid_params(f"_meta must contain {PROTOCOL_VERSION_META_KEY}")
    if not isinstance(requested, str):
        raise invalid_params(f"{PROTOCOL_VERSION_META_KEY} must be a string")
    if header is None:
        raise headers.mismatch(f"{headers.PROTOCOL_VERSION} is missing")
    if header.strip(" \t") != requested:
        raise headers.mismatch(
            f"{headers.PROTOCOL_VERSION} {header[:40]!r} does not match the body's "
            f"{requested[:40]!r}"
        )


def unsupported_version(requested: str) -> MCPError:
    """Return the modern era's error; it lists modern versions only.

    A legacy one in the list would invite the client to send it in ``_meta``, where it has no
    meaning.
    """
    return MCPError(
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        "Unsupported protocol version",
        {"supported": [revision.name for revision in MODERN], "requested": requested[:100]},
    )


def check_legacy_version(version_header: str | None) -> None:
    """Refuse a legacy message whose version header names nothing that is served.

    2025-06-18 and 2025-11-25, basic/transports, "Protocol Version Header": 400 Bad Request. A
    supported version that is not the session's own is let through; the session decides.
    """
    if version_header is None or version_header.strip() in BY_NAME:
        return
    served = ", ".join(revision.name for revision in LEGACY)
    raise MCPError(
        ErrorCode.INVALID_REQUEST,
        f"Unsupported protocol version {version_header[:40]!r} (supported versions: {served})",
    )


def negotiate(requested: str) -> Revision:
    """Return the revision with which ``initialize`` is answered.

    2025-11-25, basic/lifecycle, "Version Negotiation": the requested one if it is served, else the
    newest that a handshake can reach.
    """
    revision = BY_NAME.get(requested)
    return revision if revision in LEGACY and revision is not None else NEWEST_LEGACY


def is_modern_name(name: str | None) -> bool:
    """Return whether a version header names a modern revision, known or to come."""
    if name is None:
        return False
    name = name.strip()
    known = BY_NAME.get(name)
    if known is not None:
        return known.modern
    # Revisions are dated. One that is newer than any known is modern, and will be refused as such.
    return bool(_DATE.fullmatch(name)) and name > MODERN[0].name


def _modern_sender(request: Request) -> Sender:
    meta = request.meta
    capabilities, info = meta.get(CLIENT_CAPABILITIES_META_KEY), meta.get(CLIENT_INFO_META_KEY)
    level = meta.get(LOG_LEVEL_META_KEY)
    if capabilities is None:
        raise invalid_params(f"_meta must contain {CLIENT_CAPABILITIES_META_KEY}")
    if request.is_large or len(said := to_json((capabilities, info))) > SHORT_BYTES:
        _check_said(capabilities, info, many=request.many)
    else:
        _check_said_once(said)
    if level is not None and level not in LOG_LEVELS:
        raise invalid_params(f"{LOG_LEVEL_META_KEY} must be one of {', '.join(LOG_LEVELS)}")
    return Sender(info, capabilities, level)


def _check_said(capabilities: Any, info: Any, *, many: bool) -> None:
    where = CLIENT_CAPABILITIES_META_KEY
    try:
        (_CAPABILITIES.validate_many if many else _CAPABILITIES.validate_few)(capabilities)
        if info is not None:
            where = CLIENT_INFO_META_KEY
            (_INFO.validate_many if many else _INFO.validate_few)(info)
    except ValidationError as error:
        raise invalid_params(f"{where} is not valid: {error.errors()[0]['msg']}") from None


# A client says the same with each request, and validating it takes several times as long as
# writing it down. What is not valid is not remembered.
@lru_cache(maxsize=256)
def _check_said_once(said: bytes) -> None:
    _check_said(*from_json(said), many=False)


_CAPABILITIES: Final = Validator(ClientCapabilities, max_items=MAX_ITEMS)
_INFO: Final = Validator(Implementation, max_items=MAX_ITEMS)
