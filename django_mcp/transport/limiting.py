"""Whether a caller may call a tool, open a session or listen, now: decided before anything is run.

2025-11-25 and 2026-07-28, server/tools, "Security Considerations": servers MUST rate limit tool
invocations.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from ..conf import get_settings
from ..principal import Principal
from ..protocol.errors import TooManyRequests
from ..protocol.messages import Notification
from ..protocol.messages import Request as Message
from ..rates import Rate
from ..server.ports import Runner
from ..server.primitives import Tool
from ..server.registry import MCPServer
from ..store.access.rate_counters import spend
from ..store.database import available
from ..store.requests.pending import LISTEN
from .http import Request

Charge = tuple[Rate, str, str]
"""A rate, the digest under which it is counted, and what it is a rate of, in words."""

WRITING: Final = frozenset({"initialize", "notifications/cancelled", LISTEN})
"""What leaves a row each time, whatever the tools: so it is counted, too, by itself."""

_rate = lru_cache(maxsize=8)(Rate.parse)


async def count_call(
    message: Message, request: Request, server: MCPServer, principal: Principal, runner: Runner
) -> None:
    """Count a call of a tool; raises :class:`TooManyRequests` if it is one too many."""
    if message.method != "tools/call":
        return
    tool = server.find_tool(message.target)
    own = tool if tool is not None and tool.rate is not None else None
    general = get_settings().rate_limit
    if own is None and not general:
        return
    charges = list(_charges(general, own, server.name, caller_of(request, principal)))
    if all(rate.per_process for rate, *_ in charges) and (own is None or own.permission is None):
        _spend(charges)
    else:
        await runner.ask(_spend_if_allowed, charges, own, principal.user)


async def count_writing(
    message: Message | Notification, request: Request, principal: Principal, runner: Runner
) -> None:
    """Count what leaves a row without being a call; raises as :func:`count_call` does."""
    general = get_settings().rate_limit
    if not general or message.method not in WRITING:
        return
    rate, key = _rate(general), _digest("", "writing", caller_of(request, principal))
    charges = [(rate, key, "initialize, subscriptions/listen and cancellations together")]
    if rate.per_process:
        _spend(charges)
    else:
        await runner.ask(_spend_if_allowed, charges, None, principal.user)


def caller_of(request: Request, principal: Principal | None) -> str:
    """Return whom limits take the caller for: of whom nothing is known, for his address."""
    known = "" if principal is None else principal.limit_key
    return known or f"at {_neighbourhood(request.address)}"


def _charges(general: str | None, tool: Tool | None, server: str, caller: str) -> Iterator[Charge]:
    if general:
        yield _rate(general), _digest("", "", caller), "tools"
    if tool is not None and tool.rate is not None:
        yield tool.rate, _digest(server, tool.key, caller), f"the tool {tool.key}"


def _spend_if_allowed(charges: list[Charge], tool: Tool | None, user: Any) -> None:
    with available():
        if tool is not None and not tool.allows(user):
            # A limit of its own would tell that there is such a tool.
            charges = charges[:-1]
        _spend(charges)


def _spend(charges: list[Charge]) -> None:
    for rate, key, what in charges:
        waiting = spend(key, rate)
        if waiting:
            seconds = math.ceil(waiting)
            raise TooManyRequests(
                f"Too many calls of {what}: at most {rate.text}. Try again in {seconds} seconds.",
                retry_after=seconds,
            )


@lru_cache(maxsize=1024)
def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=1024)
def _neighbourhood(address: str) -> str:
    """Return the part of an address that costs something to change: of IPv6, the network."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))
