"""Browser clients of other origins (Fetch standard, "CORS protocol").

The mount is in front of any CORS middleware, so the endpoint answers for itself.
"""

from __future__ import annotations

from typing import Final

from ..conf import get_settings
from ..protocol.headers import METHOD, NAME, PROTOCOL_VERSION, SESSION_ID
from . import admission
from .replies import Reply
from .request import IncomingRequest

METHODS: Final = "GET, POST, DELETE, OPTIONS"
_EXPOSED: Final = f"{SESSION_ID}, WWW-Authenticate, Retry-After"
_REQUEST_HEADERS: Final = ", ".join(
    ("Accept", "Authorization", "Content-Type", PROTOCOL_VERSION, SESSION_ID, METHOD, NAME)
)


def preflight(request: IncomingRequest) -> Reply:
    """Answer OPTIONS, which browsers send before they send anything else."""
    reply = Reply(204, headers={"Allow": METHODS})
    origin = request.origin
    if origin is None or not admission.cross_origin(origin):
        return reply
    asked = request.headers.get("Access-Control-Request-Headers")
    allow = {
        "Access-Control-Allow-Methods": METHODS,
        # Mcp-Param-* headers have no fixed names, so what is asked for is granted.
        "Access-Control-Allow-Headers": asked or _REQUEST_HEADERS,
        "Access-Control-Max-Age": "86400",
    }
    return share(request, reply.with_headers(allow))


def share(request: IncomingRequest, reply: Reply) -> Reply:
    """Let a page of an allowed origin read ``reply``."""
    origin = request.origin
    if origin is None or not admission.cross_origin(origin):
        return reply
    everyone = "*" in get_settings().allowed_origins
    sharing = {
        "Access-Control-Allow-Origin": "*" if everyone else origin,
        "Access-Control-Expose-Headers": _EXPOSED,
        "Vary": "Origin",
    }
    return reply.with_headers(sharing)
