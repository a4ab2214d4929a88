"""Checks of what pages of another origin may do (Fetch standard, "CORS protocol").

A client that runs in a browser sends a preflight before almost everything, for it sends
``Mcp-Protocol-Version``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final

from ..protocol import headers as names
from .asking import Answer, NoAnswer
from .findings import Finding, good, in_words, note, shown, warning
from .resource import WELL_KNOWN
from .visit import Visit, initialize

SENT: Final = ("authorization", "content-type", "mcp-protocol-version", "mcp-session-id")
READ: Final = ("mcp-session-id", "www-authenticate")


async def check_pages(visit: Visit) -> AsyncIterator[Finding]:
    """Check whether a page of the origin that was named may use the endpoint."""
    origin = visit.options.origin
    answer = await _preflight(visit, visit.address, "POST", SENT)
    if isinstance(answer, NoAnswer) or answer.status >= 400 or not _allows(answer, origin):
        yield note(
            "pages",
            f"Pages of {shown(origin)} may not use the endpoint. Clients that run in a browser "
            "cannot connect from there; all others can.",
            'If such a client is to connect, allow its origin (DJANGO_MCP["ALLOWED_ORIGINS"]).',
        )
        return
    refused = [each for each in SENT if not _takes(answer, each)]
    if refused:
        yield warning(
            "pages-headers",
            f"Pages of {shown(origin)} may use the endpoint, and may not send {in_words(refused)}.",
            "Name these in Access-Control-Allow-Headers.",
        )
    for finding in await _of_reading(visit, origin):
        yield finding


async def _of_reading(visit: Visit, origin: str) -> list[Finding]:
    try:
        answer = await visit.asker.call(headers={"Origin": origin}, body=initialize())
        if session := answer.header(names.SESSION_ID):
            await visit.asker.call("DELETE", headers={names.SESSION_ID: session})
    except NoAnswer:
        return []
    told = {each.strip().lower() for each in _header(answer, "expose-headers").split(",")}
    hidden = [each for each in READ if answer.header(each) and not {each, "*"} & told]
    if hidden or not _allows(answer, origin):
        return [
            warning(
                "pages-read",
                f"Pages of {shown(origin)} may send, and may not read "
                f"{in_words(hidden) if hidden else 'the answer'}.",
                "Send Access-Control-Allow-Origin with each answer, and name Mcp-Session-Id and "
                "WWW-Authenticate in Access-Control-Expose-Headers; let proxies keep these.",
            )
        ]
    return [good("pages", f"Pages of {shown(origin)} may use the endpoint.")]


async def check_document_pages(visit: Visit) -> AsyncIterator[Finding]:
    """Check that pages may read the documents of a login, and ask for tokens."""
    if not visit.document:
        return
    shut = [url async for url in _shut(visit)]
    if shut:
        yield note(
            "pages-login",
            f"A page cannot use {in_words([shown(url) for url in shut])}. A client that runs in a "
            "browser, such as the Inspector without its proxy, cannot log in.",
            "Answer OPTIONS there, allow Mcp-Protocol-Version, and send "
            "Access-Control-Allow-Origin: *.",
        )
    else:
        yield good("pages-login", "Pages may read the documents, and ask for tokens.")


async def _shut(visit: Visit) -> AsyncIterator[str]:
    for url, method in dict(_of_login(visit)).items():
        if not visit.may_fetch(url):
            continue
        answer = await _preflight(visit, url, method, ("mcp-protocol-version",))
        if (
            isinstance(answer, NoAnswer)
            or answer.status >= 400
            or not _allows(answer, visit.options.origin)
            or not _takes(answer, "mcp-protocol-version")
        ):
            yield url


def _of_login(visit: Visit) -> Iterator[tuple[str, str]]:
    yield visit.challenge.get("resource_metadata") or visit.origin + WELL_KNOWN + visit.path, "GET"
    for server in visit.servers:
        for key in ("token_endpoint", "registration_endpoint"):
            if url := server.url(key):
                yield url, "POST"


async def _preflight(
    visit: Visit, url: str, method: str, wanted: tuple[str, ...]
) -> Answer | NoAnswer:
    headers = {
        "Origin": visit.options.origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": ",".join(wanted),
    }
    try:
        return await visit.asker.ask("OPTIONS", url, headers=headers)
    except NoAnswer as error:
        return error


def _header(answer: Answer, name: str) -> str:
    return answer.header(f"access-control-{name}")


def _allows(answer: Answer, origin: str) -> bool:
    return _header(answer, "allow-origin") in ("*", origin)


def _takes(answer: Answer, name: str) -> bool:
    taken = {each.strip().lower() for each in _header(answer, "allow-headers").split(",")}
    # The star does not stand for Authorization.
    return name in taken or ("*" in taken and name != "authorization")
