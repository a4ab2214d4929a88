"""Faults of the way to an endpoint, and of what it says without a token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .plants import (
    BROKEN,
    NOTE,
    STRANGE,
    WARNING,
    Fault,
    adding,
    any_origin,
    both,
    changing,
    lets_in,
    only_listed_browsers,
    squeezed,
    to_documents,
    to_endpoint,
    without,
)
from .site import HELD, Answer, as_page, error


def _connection() -> Iterator[Fault]:
    yield Fault(
        "redirect",
        False,
        to_endpoint(Answer(301, (), {"Location": "/mcp/"})),
        BROKEN,
        "redirect",
        "A POST is redirected (301) to",
    )
    yield Fault(
        "redirect-login",
        False,
        to_endpoint(Answer(302, (), STRANGE)),
        BROKEN,
        "redirect",
        "to https://www.example.com/login. Clients follow with a GET",
    )
    yield Fault(
        "silent",
        False,
        to_endpoint(Answer(200, (HELD,), {"Content-Type": "text/plain"})),
        BROKEN,
        "not-mcp",
        "answered with text/plain, and not with a JSON-RPC response",
    )
    yield Fault(
        "page",
        False,
        to_endpoint(as_page()),
        BROKEN,
        "not-mcp",
        "answered with text/html, and not with a JSON-RPC response",
    )
    yield Fault(
        "page-404",
        False,
        to_endpoint(as_page(404)),
        BROKEN,
        "not-found",
        "Nothing is served at this URL (404)",
    )
    yield Fault(
        "no-post", False, to_endpoint(as_page(405)), BROKEN, "no-post", "This URL takes no POST"
    )
    yield Fault(
        "closed",
        False,
        to_endpoint(error(403, "AUTH is not set")),
        BROKEN,
        "forbidden",
        'Clients log in after a 401 only: "AUTH is not set" (403)',
    )
    yield Fault(
        "bad-host",
        False,
        to_endpoint(error(400, "Invalid Host header")),
        BROKEN,
        "bad-request",
        '"Invalid Host header" (400)',
    )
    yield Fault(
        "bad-gateway",
        False,
        to_endpoint(as_page(502)),
        BROKEN,
        "server-error",
        "a proxy before it, answers 502",
    )
    yield Fault(
        "small-bodies",
        False,
        to_endpoint(as_page(413)),
        BROKEN,
        "too-large",
        "refused as too large",
    )
    yield Fault(
        "limited",
        False,
        to_endpoint(error(429, "Slow down")),
        BROKEN,
        "rate-limit",
        "takes no more requests from here for now",
    )
    yield Fault(
        "teapot",
        False,
        to_endpoint(as_page(418)),
        BROKEN,
        "unexpected-status",
        "answered with the status 418, and text/html",
    )
    yield Fault(
        "401-page",
        True,
        changing(
            lambda asked, answer: (
                replace(as_page(401), headers=answer.headers | {"Content-Type": "text/html"})
                if answer.status == 401
                else answer
            )
        ),
        WARNING,
        "content-type",
        "The answer (401) has text/html",
    )
    yield Fault(
        "compressed", False, changing(squeezed), BROKEN, "not-mcp", "not with a JSON-RPC response"
    )


def _endpoint() -> Iterator[Fault]:
    yield Fault(
        "any-token", True, lets_in, BROKEN, "any-token", "A token that nobody has issued is let in"
    )
    yield Fault(
        "403-for-token",
        True,
        changing(
            lambda asked, answer: (
                error(403, "no")
                if answer.status == 401 and "authorization" in asked.headers
                else answer
            )
        ),
        BROKEN,
        "bad-token",
        "is answered with 403",
    )
    yield Fault(
        "origin",
        False,
        any_origin,
        BROKEN,
        "origin",
        "By DNS rebinding any page could use the endpoint",
    )
    yield Fault(
        "get-page",
        False,
        to_endpoint(as_page(), "GET"),
        BROKEN,
        "get",
        "answered with 200 and text/html",
    )
    yield Fault(
        "get-redirect",
        False,
        to_endpoint(Answer(302, (), STRANGE), "GET"),
        BROKEN,
        "get-redirect",
        "A GET is redirected to https://www.example.com/login",
    )
    yield Fault(
        "no-allow",
        False,
        to_endpoint(as_page(405), "GET"),
        WARNING,
        "allow",
        "405 that names no methods in Allow",
    )
    yield Fault(
        "may-be-cached",
        True,
        adding("Cache_Control", "public, max-age=60"),
        BROKEN,
        "cached",
        "may be kept (Cache-Control: public, max-age=60)",
    )
    yield Fault(
        "from-cache",
        False,
        both(without("Cache_Control"), adding("Age", "12")),
        BROKEN,
        "cached",
        "An answer to POST comes from a cache",
    )
    yield Fault(
        "cached-get",
        False,
        both(without("Cache_Control"), adding("Cf_Cache_Status", "HIT", "GET")),
        BROKEN,
        "cached",
        "An answer to GET comes from a cache",
    )
    yield Fault(
        "pages-headers",
        True,
        changing(only_listed_browsers),
        WARNING,
        "pages-headers",
        "may not send authorization, mcp-protocol-version and mcp-session-id",
    )
    yield Fault(
        "pages-read",
        True,
        without("Access_Control_Expose_Headers"),
        WARNING,
        "pages-read",
        "may not read mcp-session-id",
    )
    yield Fault(
        "pages-login",
        True,
        changing(
            lambda asked, answer: (
                Answer(405) if asked.method == "OPTIONS" and not asked.is_endpoint else answer
            )
        ),
        NOTE,
        "pages-login",
        "cannot log in",
    )


def _documents() -> Iterator[Fault]:
    yield Fault(
        "documents-redirected",
        False,
        to_documents(Answer(302, (), STRANGE)),
        BROKEN,
        "document-redirect",
        "are redirected at /.well-known/oauth-protected-resource/mcp",
    )
    yield Fault(
        "documents-page",
        False,
        to_documents(as_page()),
        BROKEN,
        "document-page",
        "A page answers at /.well-known/oauth-protected-resource/mcp",
    )
    yield Fault(
        "documents-closed",
        False,
        to_documents(as_page(401)),
        BROKEN,
        "document-closed",
        "A login is asked for at /.well-known/",
    )
    yield Fault(
        "documents-failing",
        False,
        to_documents(as_page(500)),
        BROKEN,
        "document-error",
        "The server fails at /.well-known/",
    )
    yield Fault(
        "documents-html",
        False,
        to_documents(as_page(404)),
        WARNING,
        "document-html",
        "Codex shows people all of it",
    )
    yield Fault(
        "documents-head",
        True,
        changing(lambda asked, answer: Answer(405) if asked.method == "HEAD" else answer),
        WARNING,
        "document-head",
        "/.well-known/oauth-protected-resource/mcp (405 instead of 200)",
    )


FAULTS = [*_connection(), *_endpoint(), *_documents()]
