"""The view under WSGI, as the clients of the other ways in meet it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from django.test import Client

from tests.support.streams import StreamedAnswer
from tests.support.waiting import in_thread


class WholeAnswer(StreamedAnswer):
    """A response that has come in one piece."""

    def __init__(self, response: Any) -> None:
        super().__init__()
        self.status = response.status_code
        self.headers = {name.lower(): str(value) for name, value in response.headers.items()}
        self._left: list[bytes] = [response.getvalue()]

    async def _piece(self) -> bytes | None:
        return self._left.pop() if self._left else None


class WSGI:
    """An endpoint of :class:`tests.support.client.Client`: each request has a thread."""

    def __init__(self, path: str = "/mcp") -> None:
        self.path = path

    @asynccontextmanager
    async def send(
        self, method: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[WholeAnswer]:
        yield WholeAnswer(await in_thread(self._send, method, headers, body))

    def _send(self, method: str, headers: Mapping[str, str], body: bytes) -> Any:
        environ: dict[str, Any] = {
            f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()
        }
        environ["CONTENT_TYPE"] = environ.pop("HTTP_CONTENT_TYPE", "")
        environ["CONTENT_LENGTH"] = str(len(body))
        return Client(raise_request_exception=False).generic(method, self.path, body, **environ)
