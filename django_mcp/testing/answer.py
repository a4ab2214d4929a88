"""The answer to a request of a test, with assertions."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse

from ..protocol import sse


class MCPFailure(AssertionError):
    """A request ended in a JSON-RPC error where the test wanted a result."""


class Answer:
    """The answer to one request, with assertions that can be chained.

    Each ``assert_`` method raises ``AssertionError``, or returns the answer again.
    """

    def __init__(self, response: HttpResponse) -> None:
        self.http = response
        """The HTTP response."""
        *notifications, last = _messages(response) or [{}]
        self.message: dict[str, Any] = last
        """The JSON-RPC response; empty where there is none."""
        self.said: list[dict[str, Any]] = notifications
        """The notifications before it: of progress, and log messages."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.http.status_code} {self.message}>"

    @property
    def error(self) -> dict[str, Any] | None:
        """The JSON-RPC error: ``code``, ``message`` and perhaps ``data``."""
        return self.message.get("error")

    @property
    def result(self) -> dict[str, Any]:
        """The result; raises :class:`MCPFailure` if there is none."""
        if "result" not in self.message:
            raise MCPFailure(f"No result, but {self.error or self.http.status_code}")
        result: dict[str, Any] = self.message["result"]
        return result

    @property
    def text(self) -> str:
        """All text in the result: content blocks, resource contents or prompt messages."""
        return "\n".join(_texts(self.result))

    def assert_ok(self) -> Answer:
        """Assert that there is a result, and that it is not an ``isError`` result."""
        assert not self.result.get("isError"), f"The tool reported an error: {self.text}"
        return self

    def assert_failed(self, text: str = "") -> Answer:
        """Assert an ``isError`` result that contains ``text``."""
        assert self.result.get("isError"), f"The tool reported no error: {self.text}"
        return self.assert_contains(text)

    def assert_error(self, code: int, text: str = "") -> Answer:
        """Assert a JSON-RPC error with ``code`` whose message contains ``text``."""
        assert self.error is not None, f"No error, but {self.message.get('result')}"
        assert self.error["code"] == code, f"Another error: {self.error}"
        assert text in self.error["message"], f"{text!r} is not in {self.error['message']!r}"
        return self

    def assert_contains(self, text: str) -> Answer:
        """Assert that the result's text contains ``text``."""
        assert text in self.text, f"{text!r} is not in {self.text!r}"
        return self

    def assert_structured(self, expected: Any) -> Answer:
        """Assert the structured content of a tool's result."""
        assert self.structured == expected, f"{self.structured!r} is not {expected!r}"
        return self

    @property
    def structured(self) -> Any:
        """The structured content of a tool's result, or ``None``."""
        return self.result.get("structuredContent")


def _messages(response: HttpResponse) -> list[dict[str, Any]]:
    if not response.content:
        return []
    if response.headers.get("Content-Type") != sse.MEDIA_TYPE:
        return [json.loads(response.content)]
    return [json.loads(event.data) for event in sse.read_events(response.content) if event.data]


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["text"]] if isinstance(value.get("text"), str) else []
        members = (each for name, each in value.items() if name != "structuredContent")
        return own + [text for each in members for text in _texts(each)]
    return [text for each in value for text in _texts(each)] if isinstance(value, list) else []
