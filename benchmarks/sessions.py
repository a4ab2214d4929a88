"""Opens sessions, and streams on which nothing comes."""

from __future__ import annotations

import http.client
import json
import socket
import time
from typing import Any

from tests.support.servers import HOST

from .legs import LEGACY, OPEN, headers_of

SECONDS = 20
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Refused(Exception):
    """The server does not do this."""


def open_sessions(port: int, number: int) -> list[str]:
    """Open sessions over one connection; return their ids."""
    connection = http.client.HTTPConnection(HOST, port, timeout=SECONDS)
    try:
        return [_open(connection) for _ in range(number)]
    finally:
        connection.close()


def _open(connection: http.client.HTTPConnection) -> str:
    message = {"id": 1, "method": "initialize", "params": OPEN.params(1)}
    session = _post(connection, message, "").getheader("mcp-session-id")
    if not session:
        raise Refused("initialize is answered without a session")
    _post(connection, {"method": "notifications/initialized"}, session)
    return session


def _post(
    connection: http.client.HTTPConnection, message: dict[str, Any], session: str
) -> http.client.HTTPResponse:
    headers = HEADERS | headers_of(LEGACY, message["method"], session=session)
    body = json.dumps({"jsonrpc": "2.0", **message})
    connection.request("POST", "/mcp", body, headers)
    response = connection.getresponse()
    text = response.read()
    if response.status not in (200, 202):
        raise Refused(f"{message['method']}: {response.status} {text[:300]!r}")
    return response


class IdleStream:
    """A stream that a session GETs."""

    def __init__(self, port: int, session: str) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=SECONDS)
        lines = [
            "GET /mcp HTTP/1.1",
            f"Host: {HOST}:{port}",
            "Accept: text/event-stream",
            f"Mcp-Session-Id: {session}",
            f"Mcp-Protocol-Version: {LEGACY}",
        ]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._seen = b""
        self.wait_for(b"\r\n")
        if b" 200 " not in self._before:
            self.close()
            raise Refused(self._before.decode("latin-1"))
        self.wait_for(b"\r\n\r\n")

    def wait_for(self, text: bytes) -> float:
        """Return when a text has come that was not there before."""
        while text not in self._seen:
            data = self._socket.recv(65536)
            if not data:
                raise Refused("The stream has ended")
            self._seen += data
        when = time.perf_counter()
        self._before, _, self._seen = self._seen.partition(text)
        return when

    def close(self) -> None:
        """End it."""
        self._socket.close()
