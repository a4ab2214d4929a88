"""Checks of the revisions that are agreed on, and of sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from ..protocol import headers as names
from ..protocol.versions import LEGACY, MODERN, Revision
from .asking import Answer, NoAnswer, error_text
from .findings import Finding, broken, good, in_words, note, shown, warning
from .visit import ID, Visit, in_session, initialize, modern

PINGS: Final = 8
"""How often a session is looked for, each time on a connection of its own."""
PING: Final = {"jsonrpc": "2.0", "id": ID, "method": "ping"}


async def check_revisions(visit: Visit) -> AsyncIterator[Finding]:
    """Check in which eras, and at which revisions, the server speaks.

    2025-11-25, basic/lifecycle, "Version Negotiation"; 2026-07-28, basic/versioning.
    """
    if not visit.can_speak:
        yield note(
            "not-looked-at",
            "Revisions, sessions, streams and tools were not looked at, since the server asks for "
            "a token.",
            "Give one with --token-file or --token-env.",
        )
        return
    said: dict[str, Answer | NoAnswer] = {}
    for revision in (*LEGACY, *MODERN):
        answer = said[revision.name] = await _tried(visit, revision)
        if isinstance(answer, Answer) and answer.status in (401, 403) and visit.options.token:
            yield _of_refused(answer)
            visit.is_over = True
            return
        if _is_agreed(answer, revision):
            visit.revisions.append(revision)
    for finding in _of_revisions(visit, said):
        yield finding


async def _tried(visit: Visit, revision: Revision) -> Answer | NoAnswer:
    try:
        if revision.modern:
            headers, body = modern("server/discover", {})
            return await visit.asker.call(headers=headers, body=body)
        answer = await visit.asker.call(body=initialize(revision))
        if session := answer.header(names.SESSION_ID):
            await visit.asker.call("DELETE", headers={names.SESSION_ID: session})
    except NoAnswer as error:
        return error
    return answer


def _is_agreed(answer: Answer | NoAnswer, revision: Revision) -> bool:
    result = result_of(answer)
    if result is None:
        return False
    if revision.modern:
        supported = result.get("supportedVersions")
        return isinstance(supported, list) and revision.name in supported
    return result.get("protocolVersion") == revision.name


def result_of(answer: Answer | NoAnswer) -> dict[str, Any] | None:
    """Return the result that an answer holds, if it does."""
    message = answer.message(ID) if isinstance(answer, Answer) and answer.status == 200 else None
    result = (message or {}).get("result")
    return result if isinstance(result, dict) else None


def _of_refused(answer: Answer) -> Finding:
    return broken(
        "token-refused",
        f"The token is refused ({answer.status}){error_text(answer)}.",
        "See that it has not expired, and was issued for this URL. The server's log may say why.",
    )


def _of_revisions(visit: Visit, said: dict[str, Answer | NoAnswer]) -> list[Finding]:
    agreed = [revision.name for revision in visit.revisions]
    if not agreed:
        first = next(iter(said.values()))
        why = str(first) if isinstance(first, NoAnswer) else f"{first.status}{error_text(first)}"
        return [
            broken(
                "no-revision",
                f"No revision of MCP is agreed on. To initialize the server says {why}.",
                "See that the endpoint speaks Streamable HTTP, 2025-03-26 or later.",
            )
        ]
    findings = [good("revisions", f"Revisions that are agreed on: {in_words(agreed)}.")]
    if not any(revision.modern for revision in visit.revisions):
        text = "The server has sessions alone, and does not speak 2026-07-28."
        findings.append(note("legacy-only", text))
    elif all(revision.modern for revision in visit.revisions):
        findings.append(
            warning(
                "modern-only",
                "The server speaks 2026-07-28 alone. Clients that were made before cannot connect.",
                "Serve 2025-11-25 as well.",
            )
        )
    return findings


async def check_session(visit: Visit) -> AsyncIterator[Finding]:
    """Check that a session's id comes through, and that every worker knows the session.

    2025-11-25, basic/transports, "Session Management".
    """
    legacy = [revision for revision in visit.revisions if not revision.modern]
    if not legacy:
        return
    answer = await _opened(visit, legacy[-1])
    visit.session = None if answer is None else answer.header(names.SESSION_ID) or None
    if answer is None:
        return
    headers = in_session(visit, legacy[-1])
    try:
        pings = [await visit.asker.call(headers=headers, body=PING) for _ in range(PINGS)]
    except NoAnswer as error:
        yield broken("ping", f"A ping has no answer: {error}.", "See the server's log.")
        return
    lost = [ping for ping in pings if result_of(ping) is None]
    if visit.session is None:
        yield _of_no_session(lost)
    elif not lost:
        yield good("session", f"A session was found again {PINGS} times, on new connections.")
    else:
        yield _of_lost(lost)


async def _opened(visit: Visit, revision: Revision) -> Answer | None:
    """Open a session, as 2025-11-25, basic/lifecycle, has it."""
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    try:
        answer = await visit.asker.call(body=initialize(revision))
        if session := answer.header(names.SESSION_ID):
            headers = {names.PROTOCOL_VERSION: revision.name, names.SESSION_ID: session}
            await visit.asker.call(headers=headers, body=notification)
    except NoAnswer:
        return None
    return answer


def _of_no_session(lost: list[Answer]) -> Finding:
    if not lost:
        return good("no-session", "The server gives no session, and needs none.")
    return broken(
        "session-header",
        "The server gives no Mcp-Session-Id, and answers nothing without one"
        f"{error_text(lost[0])} ({lost[0].status}).",
        "Let proxies keep the header Mcp-Session-Id of answers.",
    )


def _of_lost(lost: list[Answer]) -> Finding:
    status = shown(lost[0].status)
    if len(lost) == PINGS:
        return broken(
            "session-lost",
            f"No request finds the session that was just opened again ({status})"
            f"{error_text(lost[0])}.",
            "Let proxies pass the header Mcp-Session-Id on, and let workers share sessions.",
        )
    return broken(
        "session-workers",
        f"{len(lost)} of {PINGS} requests came to a worker that does not know the session "
        f"({status}). Clients lose theirs at random.",
        "Keep sessions where all workers find them, as django_mcp does in the database that all "
        "of them are to use; cookies of a balancer do not help, since clients keep none.",
    )


async def check_end_of_session(visit: Visit) -> AsyncIterator[Finding]:
    """Check that a session can be ended, and is then unknown (404), and leave none behind."""
    if visit.session is None:
        return
    headers, visit_session = in_session(visit), visit.session
    visit.session = None
    try:
        ended = await visit.asker.call("DELETE", headers=headers)
        if ended.status == 405:
            return
        again = await visit.asker.call(headers=headers, body=PING)
    except NoAnswer as error:
        yield warning("session-end", f"A DELETE has no answer: {error}.", "See the server's log.")
        return
    if again.status != 404 and visit_session:
        yield warning(
            "session-end",
            f"A session that was ended is answered with {again.status}. Clients open a new one "
            "after a 404 only.",
            "Answer 404 to a session that is unknown.",
        )
