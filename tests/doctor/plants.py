"""Faults, and the pieces that they are made of."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from django_mcp.doctor.findings import Level

from .site import (
    TOKEN,
    Answer,
    Asked,
    Site,
    error,
    events,
)

Plant = Callable[[Site], None]
BROKEN, WARNING, NOTE = Level.BROKEN, Level.WARNING, Level.NOTE


@dataclass(frozen=True)
class Fault:
    """A fault, and what is to be found."""

    id: str
    guarded: bool
    plant: Plant
    level: Level
    name: str
    says: str

    def __str__(self) -> str:
        return self.id


def answering(answer: Callable[[Asked], Answer | None]) -> Plant:
    """Something that answers in the place of the server where it wants to."""

    def plant(site: Site) -> None:
        site.between.append(lambda asked, given: answer(asked) or given)

    return plant


def changing(change: Callable[[Asked, Answer], Answer]) -> Plant:
    """Something that changes answers on their way."""
    return lambda site: site.between.append(change)


def to_endpoint(answer: Answer, *methods: str) -> Plant:
    """Something that answers in the place of the endpoint."""
    wanted = methods or ("POST",)
    return answering(lambda asked: answer if asked.is_endpoint and asked.method in wanted else None)


def to_documents(answer: Answer) -> Plant:
    """Something that answers wherever a document is looked for."""
    return answering(lambda asked: answer if "/.well-known/" in asked.path else None)


def without(name: str) -> Plant:
    """A proxy that takes a header away."""
    return changing(lambda asked, answer: answer.with_headers(**{name: ""}))


def adding(name: str, value: str, *methods: str) -> Plant:
    """A proxy that adds a header to answers of the endpoint."""
    wanted = methods or ("POST",)
    return changing(
        lambda asked, answer: (
            answer.with_headers(**{name: value})
            if asked.is_endpoint and asked.method in wanted
            else answer
        )
    )


def document(**changes: Any) -> Plant:
    """A document of the resource that says something else; ``None`` leaves a member out."""
    return lambda site: _change(site.document, changes, site)


def metadata(**changes: Any) -> Plant:
    """Metadata of the authorization server that says something else."""
    return lambda site: _change(site.metadata, changes, site)


def challenge(text: str) -> Plant:
    """A challenge that says something else."""

    def plant(site: Site) -> None:
        site.challenge = text.replace("ORIGIN", site.origin)

    return plant


def both(*plants: Plant) -> Plant:
    """Several faults at once."""

    def plant_all(site: Site) -> None:
        for plant in plants:
            plant(site)

    return plant_all


def _change(found: dict[str, Any], changes: dict[str, Any], site: Site) -> None:
    for name, value in changes.items():
        if value is None:
            del found[name]
        else:
            text = json.dumps(value).replace("ORIGIN", site.origin)
            found[name] = json.loads(text)


def revisions(*names: str) -> Plant:
    def plant(site: Site) -> None:
        site.revisions = list(names)

    return plant


def tools(*listed: dict[str, Any]) -> Plant:
    def plant(site: Site) -> None:
        site.tools = list(listed)

    return plant


def any_origin(site: Site) -> None:
    """No origin is refused, and none is allowed by name."""

    def ignore(asked: Asked, answer: Answer) -> Answer:
        if asked.is_endpoint and "origin" in asked.headers and asked.method == "POST":
            headers = {name: text for name, text in asked.headers.items() if name != "origin"}
            return site._answer(replace(asked, headers=headers))
        return answer

    site.between.append(ignore)


def forgetful_workers(site: Site) -> None:
    """Two workers, the second of which has sessions of its own."""
    pings: list[Asked] = []

    def share(asked: Asked, answer: Answer) -> Answer:
        if asked.rpc == "ping":
            pings.append(asked)
            return answer if len(pings) % 2 else error(404, "Session not found")
        return answer

    site.between.append(share)


def keeps_sessions(site: Site) -> None:
    """A session that is ended lives on."""

    def keep(asked: Asked, answer: Answer) -> Answer:
        if asked.method == "DELETE":
            site.sessions.add(asked.headers["mcp-session-id"])
        return answer

    site.between.append(keep)


def lets_in(site: Site) -> None:
    """Whoever has any token is let in."""

    def admit(asked: Asked, answer: Answer) -> Answer:
        if answer.status == 401 and "authorization" in asked.headers:
            return site._answer(
                replace(asked, headers={**asked.headers, "authorization": f"Bearer {TOKEN}"})
            )
        return answer

    site.between.append(admit)


def stream(*pieces: Any, **headers: str) -> Plant:
    """What becomes of subscriptions/listen."""
    answer = events(*pieces).with_headers(**headers)
    return answering(lambda asked: answer if asked.rpc == "subscriptions/listen" else None)


ACK = b'data: {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"}\n\n'
END = b'data: {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}}\n\n'
STRANGE = {"Location": "https://www.example.com/login"}


def squeezed(asked: Asked, answer: Answer) -> Answer:
    """Answers that are compressed, asked for or not."""
    if asked.is_endpoint and asked.rpc == "initialize":
        packed = gzip.compress(b"".join(answer.pieces))
        return replace(answer, pieces=(packed,)).with_headers(Content_Encoding="gzip")
    return answer


def only_listed_browsers(asked: Asked, answer: Answer) -> Answer:
    """Preflights that allow too little."""
    if asked.method == "OPTIONS" and asked.is_endpoint:
        return answer.with_headers(Access_Control_Allow_Headers="Content-Type")
    return answer
