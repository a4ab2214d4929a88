"""A server of MCP that does everything right, with its authorization server, to plant faults in.

Both are real, at one port. A fault changes a document, or comes between an answer and whoever has
asked, as proxies and middleware do.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"
TOKEN = "a-good-token"
REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
EVENTS = "text/event-stream"
PATH = "/mcp"
RESOURCE = "/.well-known/oauth-protected-resource"
ISSUER = "/.well-known/oauth-authorization-server"
CLIENT = "/client.json"

HELD = object()
"""A piece of a body: nothing comes any more, and the connection stays open."""


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC message."""
        found = json.loads(self.body or b"{}")
        return found if isinstance(found, dict) else {}

    @property
    def rpc(self) -> str:
        """The method of JSON-RPC, or nothing."""
        return str(self.message.get("method", ""))

    @property
    def is_endpoint(self) -> bool:
        """Whether the endpoint is asked."""
        return self.path == PATH


@dataclass(frozen=True)
class Answer:
    """An answer; the pieces of its body are bytes, seconds to wait, or HELD."""

    status: int
    pieces: tuple[Any, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)

    def with_headers(self, **more: str) -> Answer:
        """The answer with other headers; an empty one is left out."""
        changed = self.headers | {name.replace("_", "-"): text for name, text in more.items()}
        return replace(self, headers={name: text for name, text in changed.items() if text})


Between = Callable[[Asked, Answer], Answer]


def as_json(body: Any, status: int = 200, **headers: str) -> Answer:
    """Answer with JSON."""
    given = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return Answer(status, (json.dumps(body).encode(),), given).with_headers(**headers)


def as_page(status: int = 200, text: str = "<h1>Welcome</h1>") -> Answer:
    """Answer with a page."""
    return Answer(status, (text.encode(),), {"Content-Type": "text/html; charset=utf-8"})


def error(status: int, message: str, code: int = -32600, **headers: str) -> Answer:
    """Answer with a JSON-RPC error."""
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return as_json(body, status, **headers)


def events(*pieces: Any) -> Answer:
    """Answer with a stream; what is no bytes and no wait is an event's message."""
    written = tuple(
        b"data: " + json.dumps(each).encode() + b"\n\n" if isinstance(each, dict) else each
        for each in pieces
    )
    return Answer(200, written, {"Content-Type": EVENTS, "Cache-Control": "no-cache"})


class Site:
    """What is served."""

    def __init__(self, *, guarded: bool) -> None:
        self.guarded = guarded
        self.origin = ""
        self.seen: list[Asked] = []
        self.sessions: set[str] = set()
        self.documents: dict[str, dict[str, Any]] = {}
        self.allowed_origins = {"*"} if guarded else set[str]()
        self.revisions = list(REVISIONS)
        self.tools: list[dict[str, Any]] = [tool("look")]
        self.challenge = ""
        self.between: list[Between] = []
        self.closing = threading.Event()

    def settle(self, origin: str) -> None:
        """Know where it is, and write its documents."""
        self.origin = origin
        self.documents[CLIENT] = {"client_id": f"{origin}{CLIENT}", "client_name": "A client"}
        if not self.guarded:
            return
        self.challenge = f'Bearer resource_metadata="{origin}{RESOURCE}{PATH}", scope="read"'
        self.documents[RESOURCE + PATH] = {
            "resource": self.url,
            "authorization_servers": [origin],
            "scopes_supported": ["read"],
            "bearer_methods_supported": ["header"],
        }
        self.documents[ISSUER] = {
            "issuer": origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": f"{origin}/token",
            "registration_endpoint": f"{origin}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": ["read", "write"],
        }

    @property
    def url(self) -> str:
        """The endpoint."""
        return self.origin + PATH

    @property
    def document(self) -> dict[str, Any]:
        """That of the resource."""
        return self.documents[RESOURCE + PATH]

    @property
    def metadata(self) -> dict[str, Any]:
        """That of the authorization server."""
        return self.documents[ISSUER]

    def answer(self, asked: Asked) -> Answer:
        """Answer a request, with whatever comes between."""
        self.seen.append(asked)
        answer = self._answer(asked)
        if "*" in self.allowed_origins:
            answer = answer.with_headers(
                Access_Control_Allow_Origin="*",
                Access_Control_Expose_Headers="Mcp-Session-Id, WWW-Authenticate",
            )
        for step in self.between:
            answer = step(asked, answer)
        return answer

    def _answer(self, asked: Asked) -> Answer:
        if asked.method == "OPTIONS":
            wanted = asked.headers.get("access-control-request-headers", "")
            return Answer(204, (), {"Access-Control-Allow-Headers": wanted})
        if not asked.is_endpoint:
            found = self.documents.get(asked.path)
            return as_json(found) if found else as_json({"error": "not_found"}, 404)
        if "origin" in asked.headers and "*" not in self.allowed_origins:
            return error(403, "Origin not allowed")
        if self.guarded and asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return error(401, "Send a token", WWW_Authenticate=self.challenge)
        match asked.method:
            case "POST":
                return self._post(asked)
            case "GET" if asked.headers.get("mcp-session-id") in self.sessions:
                return events(b": here\n\n", HELD)
            case "DELETE":
                self.sessions.discard(asked.headers.get("mcp-session-id", ""))
                return Answer(204)
        return error(405, "There is no stream", Allow="POST, DELETE")

    def _post(self, asked: Asked) -> Answer:
        if asked.headers.get("mcp-protocol-version") == REVISIONS[-1]:
            return self._modern(asked)
        if asked.rpc == "initialize":
            return self._initialize(asked)
        session = asked.headers.get("mcp-session-id")
        if session not in self.sessions:
            status = 404 if session else 400
            return error(status, "Session not found" if session else "Mcp-Session-Id is missing")
        if "id" not in asked.message:
            return Answer(202)
        return self._result(asked, {"tools": self.tools} if asked.rpc == "tools/list" else {})

    def _initialize(self, asked: Asked) -> Answer:
        legacy = [name for name in self.revisions if name != REVISIONS[-1]]
        if not legacy:
            return error(400, "Unsupported protocol version", -32022)
        wanted = asked.message["params"]["protocolVersion"]
        session = secrets.token_urlsafe()
        self.sessions.add(session)
        result = {
            "protocolVersion": wanted if wanted in legacy else legacy[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "site", "version": "1"},
        }
        return self._result(asked, result).with_headers(Mcp_Session_Id=session)

    def _modern(self, asked: Asked) -> Answer:
        if REVISIONS[-1] not in self.revisions:
            return error(400, "Unsupported protocol version")
        kept = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        match asked.rpc:
            case "server/discover":
                capabilities: dict[str, Any] = {"tools": {}}
                about = {"supportedVersions": self.revisions, "capabilities": capabilities}
                return self._result(asked, kept | about)
            case "tools/list":
                return self._result(asked, kept | {"tools": self.tools})
        opening = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"}
        return events({**opening, "params": {"notifications": {}}}, HELD)

    def _result(self, asked: Asked, result: dict[str, Any]) -> Answer:
        return as_json({"jsonrpc": "2.0", "id": asked.message["id"], "result": result})


def tool(name: str, **more: Any) -> dict[str, Any]:
    """A tool, as it is listed."""
    return {"name": name, "inputSchema": {"type": "object"}, **more}


@contextmanager
def served(site: Site, *, tls: Any = None, host: str = HOST) -> Iterator[Site]:
    """Serve a site at a free port as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = site.answer(Asked(self.command, self.path.split("?")[0], headers, body))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.flush()
            if self.command == "HEAD":
                return
            with suppress(ConnectionError):
                self._write(answer)

        do_GET = do_HEAD = do_POST = do_DELETE = do_OPTIONS = handle_any

        def _write(self, answer: Answer) -> None:
            for piece in answer.pieces:
                if piece is HELD:
                    site.closing.wait()
                elif isinstance(piece, float):
                    time.sleep(piece)
                else:
                    self.wfile.write(piece)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing: clients go away in the midst of streams, and of handshakes."""

    with Server((host, 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        site.settle(f"{scheme}://{host}:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield site
        finally:
            site.closing.set()
            server.shutdown()
            thread.join()
