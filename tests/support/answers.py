"""Answers that have come as a whole, read strictly, and by nothing of the package's own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn


@dataclass(frozen=True, slots=True)
class HTTPAnswer:
    """A response, whichever way it came."""

    status: int
    headers: dict[str, str]
    """By their names in lower case."""
    body: bytes = b""
    pieces_read: int = 0
    """How many pieces of the request's body were taken."""

    def header(self, name: str) -> str | None:
        """Return the value of a header, or ``None``."""
        return self.headers.get(name.lower())

    def json(self) -> Any:
        """Return the body, which is JSON."""
        return strict_json(self.body)

    def messages(self) -> list[Any]:
        """Return the messages in the body, whether they came as JSON or as events."""
        return messages_of(self.header("Content-Type"), self.body)

    @property
    def message(self) -> Any:
        """The one message, or the one batch, in the body."""
        (message,) = self.messages()
        return message

    @property
    def error(self) -> dict[str, Any]:
        """The error in the body's one message."""
        assert "error" in self.message, self.message
        error: dict[str, Any] = self.message["error"]
        return error

    @property
    def result(self) -> dict[str, Any]:
        """The result in the body's one message."""
        assert "result" in self.message, self.message
        result: dict[str, Any] = self.message["result"]
        return result


def strict_json(text: str | bytes) -> Any:
    """Return the value of ``text``; ``NaN`` and the infinities are not JSON."""
    return json.loads(text, parse_constant=_refuse)


def messages_of(content_type: str | None, body: bytes) -> list[Any]:
    """Return what a body holds: one value as JSON, or one per event of a stream."""
    media = (content_type or "").partition(";")[0].strip().lower()
    if media == "application/json":
        return [strict_json(body)]
    assert media == "text/event-stream", f"neither JSON nor events, but {content_type!r}"
    events = (event for event in body.decode().split("\n\n") if event)
    data = ("".join(_data(event)) for event in events)
    return [strict_json(each) for each in data if each]


def _data(event: str) -> list[str]:
    lines = [line.partition(":") for line in event.split("\n")]
    return [value.removeprefix(" ") for name, _, value in lines if name == "data"]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
