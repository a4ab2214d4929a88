"""Bodies of responses, read strictly."""

from __future__ import annotations

import json
from typing import Any, NoReturn


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
