"""Checks of what the endpoint says to whoever comes without a token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import httpx

from ..protocol import sse
from ..protocol.errors import ErrorCode
from .asking import Answer, NoAnswer, error_text
from .findings import Finding, broken, good, note, shown, warning
from .visit import ID, Visit, initialize

JSON: Final = "application/json"
STRANGER: Final = "https://stranger.invalid"
"""An origin that nobody allows by name (RFC 6761 reserves the domain)."""
NO_TOKEN: Final = "no-such-token-of-django-mcp-doctor"

MODERN_ERRORS: Final = (
    ErrorCode.METHOD_NOT_FOUND,
    ErrorCode.HEADER_MISMATCH,
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
)

STATUSES: Final = {
    404: (
        "not-found",
        "Nothing is served at this URL",
        "Check its path; the endpoint is often at /mcp. In Django, see that the URLconf has it.",
    ),
    405: (
        "no-post",
        "This URL takes no POST, by which all messages come",
        "Check its path, and that no proxy or page answers in the endpoint's place.",
    ),
    400: (
        "bad-request",
        "The server takes a well-formed request for a bad one",
        "If it names the Host, add the name to ALLOWED_HOSTS, and let proxies pass Host on. Else "
        "the server's log says more.",
    ),
    403: (
        "forbidden",
        "Whoever has no token is answered 403. Clients log in after a 401 only",
        "Answer 401 with WWW-Authenticate. If a firewall or a CDN answers, let requests to this "
        "URL pass, those of scripts too.",
    ),
    413: (
        "too-large",
        "A message of a few hundred bytes is refused as too large",
        "Raise the limit of the proxy in front (nginx: client_max_body_size).",
    ),
    429: (
        "rate-limit",
        "The server, or a proxy before it, takes no more requests from here for now",
        "Wait, and try again.",
    ),
}


async def check_post(visit: Visit) -> AsyncIterator[Finding]:
    """Check the answer to the first request that most clients send."""
    try:
        answer = visit.opening = await visit.asker.call(body=initialize(), with_token=False)
    except NoAnswer as error:
        visit.is_over = True
        yield broken(
            "no-answer",
            f"A POST is not answered: {error}.",
            "See in the server's log whether it has come; a proxy's log may say why not.",
        )
        return
    await _end_session(visit, answer)
    finding = _of_failure(visit, answer)
    if finding is not None:
        visit.is_over = True
        yield finding
        return
    if answer.status == 401:
        yield good("login", f"Whoever has no token is asked for one (401){error_text(answer)}.")
    else:
        yield good("open", "The server answers whoever has no token.")
    for finding in _of_form(answer):
        yield finding


def _of_failure(visit: Visit, answer: Answer) -> Finding | None:
    """Return why nothing more can be learned of the server, if so."""
    if answer.location or 300 <= answer.status < 400:
        return _of_redirect(visit, answer)
    if answer.status >= 500:
        return broken(
            "server-error",
            f"The server, or a proxy before it, answers {answer.status}{error_text(answer)}.",
            "See their logs: 502 and 504 are a proxy's, which does not reach the server behind it.",
        )
    message = answer.message(ID)
    if answer.status == 401 or (answer.status == 200 and message is not None):
        return None
    if message is not None and _is_of_modern_server(message):
        return None
    if answer.status == 200:
        return broken(
            "not-mcp",
            f"A POST is answered with {answer.kind}, and not with a JSON-RPC response.",
            "Check the URL: a page, perhaps a catch-all pattern or one for logging in, answers it.",
        )
    return _of_status(answer)


def _is_of_modern_server(message: dict[str, Any]) -> bool:
    """Return whether an error is that of a server of 2026-07-28 alone, without ``initialize``."""
    error = message.get("error")
    return isinstance(error, dict) and error.get("code") in MODERN_ERRORS


def _of_status(answer: Answer) -> Finding:
    name, message, cure = STATUSES.get(
        answer.status,
        (
            "unexpected-status",
            f"A POST is answered with the status {answer.status}, and {answer.kind}",
            "See the server's log.",
        ),
    )
    return broken(name, f"{message}{error_text(answer)} ({answer.status}).", cure)


def _of_redirect(visit: Visit, answer: Answer) -> Finding:
    where = shown(answer.location or "nowhere")
    cure = f"Give people the URL {where}, if that is the endpoint."
    if answer.location.rstrip("/") == visit.address.rstrip("/"):
        cure += " Or serve it with and without the slash at the end: a redirect loses the message."
    elif answer.location.removeprefix("https") == visit.address.removeprefix("http"):
        cure += " If it is reached by HTTPS already, the proxy does not say so to the server: see "
        cure += "X-Forwarded-Proto and SECURE_PROXY_SSL_HEADER."
    return broken(
        "redirect",
        f"A POST is redirected ({answer.status}) to {where}. Clients follow with a GET, without "
        "the message, or do not follow.",
        cure,
    )


def _of_form(answer: Answer) -> list[Finding]:
    findings = []
    if answer.media_type not in (JSON, sse.MEDIA_TYPE):
        cure = f"Answer with {JSON}; see whether a proxy puts a page of its own in its place."
        text = f"The answer ({answer.status}) has {answer.kind}. Some clients show it whole."
        findings.append(warning("content-type", text, cure))
    if answer.is_compressed:
        findings.append(
            warning(
                "compressed",
                f"The answer is compressed ({shown(answer.header('content-encoding'))}), which was "
                "not asked for. Not all clients can read it.",
                "Compress what Accept-Encoding asks for, and nothing of type text/event-stream.",
            )
        )
    findings += of_caching(answer)
    return findings


def of_caching(answer: Answer) -> list[Finding]:
    """Return a finding if an answer was kept, or may be, by something on the way."""
    control = answer.header("cache-control").lower()
    hit = next(
        (name for name in ("x-cache", "cf-cache-status") if "hit" in answer.header(name).lower()),
        "",
    )
    kept = answer.header("age") not in ("", "0") or hit
    may_be = "public" in control or ("max-age=" in control and "max-age=0" not in control)
    if not (kept or may_be) or "no-store" in control:
        return []
    what = "comes from a cache" if kept else f"may be kept (Cache-Control: {shown(control)})"
    return [
        broken(
            "cached",
            f"An answer to {answer.method} {what}. People would see answers to others.",
            "Let no proxy or CDN cache this URL, and send Cache-Control: no-store.",
        )
    ]


async def check_bad_token(visit: Visit) -> AsyncIterator[Finding]:
    """Check that a token that is not good is refused as the specification says.

    2026-07-28, basic/authorization, "Token Requirements": 401.
    """
    if not visit.asks_for_login:
        return
    headers = {"Authorization": f"Bearer {NO_TOKEN}"}
    try:
        answer = await visit.asker.call(headers=headers, body=initialize(), with_token=False)
    except NoAnswer as error:
        yield _no_answer("a request with a token that is not good", error)
        return
    if answer.status == 401:
        yield good("bad-token", "A token that is not good is refused with 401.")
    elif answer.status == 200:
        yield broken(
            "any-token",
            "A token that nobody has issued is let in.",
            "Look at what checks tokens: it seems to look only whether there is one.",
        )
    else:
        yield broken(
            "bad-token",
            f"A token that is not good is answered with {answer.status}. After anything but 401 "
            "clients neither renew it nor log in again.",
            "Answer 401 with WWW-Authenticate.",
        )


def _no_answer(what: str, error: NoAnswer) -> Finding:
    return broken("no-answer", f"There was no answer to {what}: {error}.", "See the server's log.")


async def check_origin(visit: Visit) -> AsyncIterator[Finding]:
    """Check that pages of strangers are refused.

    2025-11-25, basic/transports, "Security Warning"; 2026-07-28, "Security & Endpoint": 403.
    """
    headers = {"Origin": STRANGER}
    try:
        answer = await visit.asker.call(headers=headers, body=initialize(), with_token=False)
    except NoAnswer as error:
        yield _no_answer("a request with an Origin", error)
        return
    await _end_session(visit, answer)
    if answer.status == 403:
        yield good("origin", "A page of another site is refused (403).")
    elif answer.header("access-control-allow-origin") == "*":
        yield note(
            "origin-open",
            "Pages of every site may use the endpoint (Access-Control-Allow-Origin: *).",
        )
    elif answer.status == 200:
        grave = broken if visit.is_local else warning
        yield grave(
            "origin",
            f"A request with Origin: {STRANGER} is answered. By DNS rebinding any page could use "
            "the endpoint in the name of who has it open.",
            "Refuse unknown origins with 403; in Django, name your hosts in ALLOWED_HOSTS.",
        )


async def check_get(visit: Visit) -> AsyncIterator[Finding]:
    """Check what a GET gives, with which Codex, mcp-remote and legacy clients begin.

    2025-11-25, basic/transports, "Listening for Messages from the Server": a stream, or 405.
    """
    try:
        async with visit.asker.stream("GET", headers={"Accept": sse.MEDIA_TYPE}) as response:
            answer = await _head_of(response)
    except NoAnswer as error:
        yield warning(
            "get",
            f"A GET has no answer: {error}. Clients that ask for a stream of the session wait.",
            "Answer 405 where there is no stream, and send the head of a stream at once.",
        )
        return
    kind, status = answer.media_type, answer.status
    if answer.location:
        yield broken(
            "get-redirect",
            f"A GET is redirected to {shown(answer.location)}.",
            "Let the URL of the endpoint be answered by the endpoint, whatever the method.",
        )
    elif status >= 500 or (status == 200 and kind != sse.MEDIA_TYPE):
        yield broken(
            "get",
            f"A GET that takes events is answered with {status} and {answer.kind}.",
            "Answer 405 with Allow, or a stream of events. See whether a page answers for it.",
        )
    elif status == 405 and not answer.header("allow"):
        yield warning(
            "allow",
            "A GET is answered with 405 that names no methods in Allow.",
            "Send Allow: POST (RFC 9110, section 15.5.6), and let proxies keep it.",
        )
    else:
        yield good("get", f"A GET is answered as it may be ({status}).")
    for finding in of_caching(answer):
        yield finding


async def _head_of(response: httpx.Response) -> Answer:
    url = str(response.request.url)
    return Answer("GET", url, response.status_code, response.headers, b"", is_whole=False)


async def _end_session(visit: Visit, answer: Answer) -> None:
    session = answer.header("mcp-session-id")
    if session and answer.status == 200:
        await end_session(visit, session)


async def end_session(visit: Visit, session: str) -> None:
    """Leave no session behind."""
    try:
        await visit.asker.call("DELETE", headers={"Mcp-Session-Id": session})
    except NoAnswer:
        return
