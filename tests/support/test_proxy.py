"""The proxy rewrites one member of one kind of request, and is otherwise not there."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from .proxy import HOST, downgrading_proxy

SECONDS = 10
INITIALIZE = {
    "method": "initialize",
    "id": 1,
    "params": {"protocolVersion": "2025-11-25", "a": "ü"},
}


class Upstream(ThreadingHTTPServer):
    """Echoes a POST; answers a GET in two pieces, the second when `go_on` is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), Handler)
        self.go_on = threading.Event()
        self.client_left = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Host", self.headers["Host"])
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "8")
        self.end_headers()
        self.wfile.write(b"data")
        self.server.go_on.wait(SECONDS)
        self.wfile.write(b"more")

    def do_DELETE(self) -> None:
        # Answers nothing: what comes next on the connection is its end.
        if not self.connection.recv(1):
            self.server.client_left.set()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join(SECONDS)


@pytest.fixture
def client(upstream: Upstream) -> Iterator[http.client.HTTPConnection]:
    with downgrading_proxy(upstream.server_address[1], revision="2025-03-26") as proxy:
        connection = http.client.HTTPConnection(HOST, proxy.port, timeout=SECONDS)
        yield connection
        connection.close()


def test_lowers_the_proposal_and_keeps_the_rest(client: http.client.HTTPConnection) -> None:
    client.request("POST", "/mcp", json.dumps(INITIALIZE))

    answer = json.load(client.getresponse())

    assert answer == {**INITIALIZE, "params": {"protocolVersion": "2025-03-26", "a": "ü"}}


@pytest.mark.parametrize(
    "body",
    [
        b'{"method": "tools/list",  "params": {"protocolVersion": "2025-11-25"}}',
        b'[{"method": "initialize"}]',
        b'{"method": "initialize", "params": []}',
        b"not json \xff",
    ],
)
def test_passes_other_bodies_as_they_are(client: http.client.HTTPConnection, body: bytes) -> None:
    client.request("POST", "/mcp", body)

    assert client.getresponse().read() == body


def test_serves_many_requests_on_one_connection(client: http.client.HTTPConnection) -> None:
    for body in [b"one", b"three", b"fourteen"]:
        client.request("POST", "/mcp", body)
        assert client.getresponse().read() == body


def test_reads_chunked_bodies(client: http.client.HTTPConnection) -> None:
    client.request("POST", "/mcp", iter([b"one ", b"two"]), encode_chunked=True)

    assert client.getresponse().read() == b"one two"


def test_keeps_the_host(client: http.client.HTTPConnection) -> None:
    client.request("POST", "/mcp", b"x", {"Host": "evil.example.com"})

    response = client.getresponse()

    assert response.headers["X-Host"] == "evil.example.com"
    response.read()


def test_passes_what_a_stream_sends_at_once(
    client: http.client.HTTPConnection, upstream: Upstream
) -> None:
    client.request("GET", "/mcp")
    response = client.getresponse()

    assert response.read(4) == b"data"
    upstream.go_on.set()
    assert response.read(4) == b"more"


def test_tells_the_server_that_the_client_left(
    client: http.client.HTTPConnection, upstream: Upstream
) -> None:
    client.request("DELETE", "/mcp")
    client.close()

    assert upstream.client_left.wait(SECONDS)
