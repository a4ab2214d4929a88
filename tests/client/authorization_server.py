"""A server of MCP that asks for a login, and the authorization server that gives it.

Both are real ones at ports of their own, and do the little of OAuth that a client has to do right:
they refuse a code without its PKCE verifier, and a token for another resource.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from .scripted import text

LOOPBACK = "127.0.0.1"
CALLBACK = "http://127.0.0.1:1/callback"
BASE_SCOPE = "read"


@dataclass(frozen=True)
class Asked:
    """A request that has arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        """The body as a form."""
        return _pairs(self.body.decode())

    @property
    def token(self) -> str:
        """The bearer token."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass(frozen=True)
class Answer:
    """What is sent back; the body as JSON."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class Site(Protocol):
    """Answers requests, and knows where it is."""

    origin: str

    def answer(self, asked: Asked) -> Answer:
        """Answer one."""


class AuthorizationServer:
    """Gives everybody a token who comes with the right papers."""

    def __init__(self) -> None:
        self.origin = ""
        self.seen: list[Asked] = []
        self.scopes_of: dict[str, set[str]] = {}
        self.resource_of: dict[str, str] = {}
        self.granted: set[str] | None = None
        """What the person agrees to; by default to all that is asked for."""
        self.lifetime = 3600
        self.moved_to: str | None = None
        """Where requests for a token are sent, if anywhere."""
        self._codes: dict[str, dict[str, str]] = {}

    def answer(self, asked: Asked) -> Answer:
        """Answer one request."""
        self.seen.append(asked)
        match asked.path:
            case "/.well-known/oauth-authorization-server":
                return Answer(200, self._metadata())
            case "/register":
                known = {"client_id": "client-1", "token_endpoint_auth_method": "none"}
                return Answer(201, {**json.loads(asked.body), **known})
            case "/authorize":
                return self._authorize(asked.query)
            case "/token" if self.moved_to:
                return Answer(307, headers={"Location": self.moved_to})
            case "/token":
                return self._give(asked.form)
        return Answer(404)

    def count(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(asked.path == path for asked in self.seen)

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }

    def _authorize(self, query: dict[str, str]) -> Answer:
        code = secrets.token_urlsafe()
        self._codes[code] = query
        answer = {"code": code, "state": query["state"], "iss": self.origin}
        return Answer(302, headers={"Location": f"{query['redirect_uri']}?{urlencode(answer)}"})

    def _give(self, form: dict[str, str]) -> Answer:
        match form["grant_type"]:
            case "authorization_code":
                asked = self._codes.pop(form["code"])
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                assert asked["code_challenge"] == challenge
                assert asked["resource"] == form["resource"]
                scopes = set(asked["scope"].split())
            case "refresh_token":
                scopes = self.scopes_of[form["refresh_token"]]
            case _:
                scopes = set(form.get("scope", BASE_SCOPE).split())
        if self.granted is not None:
            scopes &= self.granted
        return Answer(200, self.issue(form["resource"], scopes))

    def issue(self, resource: str, scopes: set[str]) -> dict[str, Any]:
        """Make a token, as the answer to who has asked for it."""
        token, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        self.scopes_of[token] = self.scopes_of[refresh] = scopes
        self.resource_of[token] = resource
        return {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "refresh_token": refresh,
            "scope": " ".join(sorted(scopes)),
        }


class GuardedEndpoint:
    """A server of 2026-07-28 with a tool for each scope, of the same name."""

    def __init__(self, authority: AuthorizationServer) -> None:
        self.origin = ""
        self.authority = authority
        self.seen: list[Asked] = []
        self.calls: list[str] = []
        """The tools that have run."""
        self.moved_to: str | None = None
        """Where calls are sent, if anywhere."""

    @property
    def url(self) -> str:
        """Where it is."""
        return f"{self.origin}/mcp"

    def answer(self, asked: Asked) -> Answer:
        """Answer one request."""
        self.seen.append(asked)
        if asked.path == "/.well-known/oauth-protected-resource/mcp":
            servers = [self.authority.origin]
            return Answer(200, {"resource": self.url, "authorization_servers": servers})
        if asked.path != "/mcp" or asked.method != "POST":
            return Answer(404)
        if self.authority.resource_of.get(asked.token) != self.url:
            return self._challenge(401, "invalid_token", BASE_SCOPE)
        message = json.loads(asked.body)
        if message["method"] == "server/discover":
            return Answer(200, _response(message, _DESCRIPTION))
        tool = message["params"]["name"]
        if self.moved_to:
            return Answer(307, headers={"Location": self.moved_to})
        if tool not in self.authority.scopes_of[asked.token]:
            return self._challenge(403, "insufficient_scope", tool)
        self.calls.append(tool)
        return Answer(200, _response(message, {"resultType": "complete", **text("done")}))

    def _challenge(self, status: int, error: str, scope: str) -> Answer:
        where = f"{self.origin}/.well-known/oauth-protected-resource/mcp"
        challenge = f'Bearer error="{error}", scope="{scope}", resource_metadata="{where}"'
        return Answer(status, {"error": error}, {"WWW-Authenticate": challenge})


class Elsewhere:
    """A server that nobody has named; it takes whatever it gets."""

    def __init__(self) -> None:
        self.origin = ""
        self.seen: list[Asked] = []

    def answer(self, asked: Asked) -> Answer:
        """Note it."""
        self.seen.append(asked)
        return Answer(200, {})


_DESCRIPTION = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}


def _response(message: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _pairs(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}


@contextmanager
def serving(site: Site) -> Iterator[None]:
    """Serve a site at a free port as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            split = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            given = Asked(self.command, split.path, _pairs(split.query), headers, body)
            answer = site.answer(given)
            content = json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = handle_any

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        site.origin = f"http://{LOOPBACK}:{server.server_port}"
        # It looks that often whether it is to end.
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


class Browser:
    """A person who is sent to the authorization server, agrees, and comes back."""

    def __init__(self) -> None:
        self.visits: list[dict[str, str]] = []
        self._answer: dict[str, str] = {}

    async def visit(self, url: str) -> None:
        """Go to the page, and be sent back with a code."""
        self.visits.append(_pairs(urlsplit(url).query))
        async with httpx.AsyncClient() as client:
            response = await client.get(url)
        self._answer = _pairs(urlsplit(response.headers["location"]).query)

    @property
    def answer(self) -> dict[str, str]:
        """What the person came back with: `code`, `state` and `iss`."""
        return self._answer
