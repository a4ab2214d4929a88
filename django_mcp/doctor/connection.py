"""Checks of the way to the server: its name, its addresses, its certificate."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator
from typing import Final
from urllib.request import getproxies, proxy_bypass

from .findings import Finding, broken, good, in_words, note, shown, warning
from .visit import Visit

ADDRESSES: Final = 6
EXPIRES_SOON_DAYS: Final = 14


async def check_scheme(visit: Visit) -> AsyncIterator[Finding]:
    """Check that what is sent cannot be read on the way, and who can reach the address."""
    if visit.is_on_loopback:
        visit.is_local = True
        yield note(
            "local",
            "This address is one of this machine. Clients that run here can connect; Claude and "
            "ChatGPT connect from their makers' servers, and cannot.",
        )
    elif visit.url.scheme == "http":
        yield broken(
            "plain-http",
            "The URL begins with http://. Whoever is on the way can read tokens and answers, and "
            "Claude and ChatGPT connect by HTTPS alone.",
            "Serve the endpoint by HTTPS, and give people that URL.",
        )
    if visit.url.query:
        yield warning(
            "query",
            "The URL has a query. Clients use the whole URL as the name of the resource, and a "
            "secret in it ends in logs.",
            "Give people a URL without a query, and secrets as a token.",
        )


async def check_addresses(visit: Visit) -> AsyncIterator[Finding]:
    """Check that the name is known, and that somebody answers at each of its addresses."""
    host, port = visit.url.host, visit.url.port or (443 if visit.url.scheme == "https" else 80)
    if _proxy(visit):
        yield note(
            "proxy",
            "The environment names a proxy for this URL. What is found out about the connection is "
            "that of the proxy.",
        )
        return
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        visit.is_over = True
        yield broken(
            "unknown-name",
            f"The name {shown(host)} is not known here ({shown(error)}).",
            "Check its spelling; if it is new, wait until DNS has it everywhere.",
        )
        return
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))[:ADDRESSES]
    if not visit.is_on_loopback and all(_is_private(each) for each in addresses):
        visit.is_local = True
        yield note(
            "private",
            f"{shown(host)} has private addresses only ({in_words(addresses)}). Claude and ChatGPT "
            "connect from their makers' servers, and cannot reach it.",
        )
    deaf = {each: reason for each in addresses if (reason := await _refusal(visit, each, port))}
    for finding in _of_deaf(visit, deaf, addresses, port):
        yield finding


def _of_deaf(visit: Visit, deaf: dict[str, str], addresses: list[str], port: int) -> list[Finding]:
    if not deaf:
        where = in_words(addresses)
        return [good("reachable", f"Somebody answers at port {port} of {where}.")]
    reasons = in_words([f"{each}: {shown(reason)}" for each, reason in deaf.items()])
    if len(deaf) == len(addresses):
        visit.is_over = True
        return [
            broken(
                "unreachable",
                f"Nobody answers at port {port} ({reasons}).",
                "Start the server, let it listen at this address, and open the port in firewalls.",
            )
        ]
    if visit.is_on_loopback:
        return [note("deaf-address", f"Nobody answers at some of its addresses ({reasons}).")]
    return [
        warning(
            "deaf-address",
            f"Nobody answers at some of its addresses ({reasons}). Clients that try these first "
            "wait, or fail.",
            "Let the server listen there too, or take the address out of DNS.",
        )
    ]


def _proxy(visit: Visit) -> bool:
    if visit.is_on_loopback or visit.url.scheme not in getproxies():
        return False
    return not proxy_bypass(visit.url.host)


def _is_private(address: str) -> bool:
    try:
        return not ipaddress.ip_address(address.partition("%")[0]).is_global
    except ValueError:
        return False


async def _refusal(visit: Visit, address: str, port: int) -> str:
    """Return why nobody answers at an address; nothing where somebody does."""
    try:
        async with asyncio.timeout(visit.options.timeout):
            _, writer = await asyncio.open_connection(address, port)
    except TimeoutError:
        return f"nothing within {visit.options.timeout:g} seconds"
    except OSError as error:
        # What asyncio says is how it has tried.
        return os.strerror(error.errno) if error.errno else type(error).__name__
    writer.close()
    return ""


async def check_certificate(visit: Visit) -> AsyncIterator[Finding]:
    """Check that clients accept the certificate, and will for some time."""
    if visit.url.scheme != "https" or _proxy(visit):
        return
    host, port = visit.url.host, visit.url.port or 443
    try:
        async with asyncio.timeout(visit.options.timeout):
            _, writer = await asyncio.open_connection(host, port, ssl=visit.asker.tls)
    except ssl.SSLCertVerificationError as error:
        visit.is_over = True
        yield broken(
            "certificate",
            f"The certificate is not accepted: {shown(error.verify_message)}.",
            "Serve one that is for this name, has not expired, and comes with the certificates of "
            "those who issued it (the full chain).",
        )
        return
    except (OSError, TimeoutError) as error:
        visit.is_over = True
        yield broken(
            "tls",
            f"No secure connection comes about ({shown(error) or type(error).__name__}).",
            "See that port and scheme of the URL belong together, and that TLS 1.2 or 1.3 is on.",
        )
        return
    tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
    certificate = tls.getpeercert() or {}
    writer.close()
    yield _of_expiry(str(certificate["notAfter"]))


def _of_expiry(not_after: str) -> Finding:
    days = int((ssl.cert_time_to_seconds(not_after) - time.time()) // 86_400)
    if days >= EXPIRES_SOON_DAYS:
        return good("certificate", f"The certificate is accepted, and good for {days} days.")
    return warning(
        "certificate-expires",
        f"The certificate expires in {days} days.",
        "See that it is renewed in time, and that the server then takes up the new one.",
    )
