"""Whether a caller may call a tool, open a session or listen, now: decided before anything is run.

2025-11-25 and 2026-07-28, server/tools, "Security Considerations": servers MUST rate limit tool
invocations.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
from functools import lru_cache
from typing import Any, Final

from ..protocol import messages
from ..protocol.errors import TooManyRequests
from ..rates import Rate
from ..server.primitives import Tool
from ..store.access.rate_counters import counts_here, spend
from ..store.database import reporting_outages
from ..store.delivery.request_rows import LISTEN
from .request import Caller

Charge = tuple[Rate, str, str]
"""A rate, the digest under which it is counted, and what it is a rate of, in words."""

WRITING: Final = frozenset({"initialize", "notifications/cancelled", LISTEN})
"""What leaves a row each time, whatever the tools: so it is counted, too, by itself."""

_IN_WORDS: Final = "initialize, subscriptions/listen and cancellations together"

_rate = lru_cache(maxsize=8)(Rate.parse)


async def count(message: messages.Request | messages.Notification, caller: Caller) -> None:
    """Count what has a limit; raises :class:`TooManyRequests` if it is one too many."""
    general, tool = caller.settings.rate_limit, None
    if message.method == "tools/call":
        name = message.params.get("name")
        tool = caller.server.find_tool(name) if isinstance(name, str) else None
        if tool is not None and tool.rate is None:
            tool = None
        charges = [(_rate(general), _digest("", "", caller.limit_key), "tools")] if general else []
        if tool is not None and tool.rate is not None:
            key = _digest(caller.server_name, tool.key, caller.limit_key)
            charges.append((tool.rate, key, f"the tool {tool.key}"))
    elif general and message.method in WRITING:
        charges = [(_rate(general), _digest("", "writing", caller.limit_key), _IN_WORDS)]
    else:
        return
    for rate, *_ in charges:
        if not rate.per_process:
            await caller.runner.run(_spend_if_allowed, charges, tool, caller.principal.user)
            return
    if tool is not None and tool.permission is not None:
        await caller.runner.run(_spend_if_allowed, charges, tool, caller.principal.user)
    else:
        _spend(charges)


@lru_cache(maxsize=1024)
def address_key(address: str, partition: str = "") -> str:
    """Return whom limits take a caller for of whom nothing is known but the address."""
    key = f"at {_neighbourhood(address)}"
    return f"{partition}\n{key}" if partition else key


def _spend_if_allowed(charges: list[Charge], tool: Tool | None, user: Any) -> None:
    with reporting_outages():
        if tool is not None and not tool.allows(user):
            # A limit of its own would tell that there is such a tool.
            charges = charges[:-1]
        _spend(charges)


def _spend(charges: list[Charge]) -> None:
    for rate, key, what in charges:
        waiting = counts_here().spend(key, rate) if rate.per_process else spend(key, rate)
        if waiting:
            seconds = math.ceil(waiting)
            raise TooManyRequests(
                f"Too many calls of {what}: at most {rate.text}. Try again in {seconds} seconds.",
                retry_after=seconds,
            )


@lru_cache(maxsize=1024)
def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _neighbourhood(address: str) -> str:
    """Return the part of an address that costs something to change: of IPv6, the network."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))
