"""Answers the questions of a server in a test, as a user, a model and their client would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from mcp_types import Result
from pydantic_core import to_jsonable_python

from ..transport.calls import InlineDoor
from ..transport.http import Reply
from ..transport.peers import Collected
from ..transport.posted import Posted

CAPABILITIES: Final[dict[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}
"""What a client declares that answers everything."""


class Refusal(Enum):
    """What a user does instead of answering."""

    DECLINE = "decline"
    CANCEL = "cancel"


DECLINE: Final = Refusal.DECLINE
CANCEL: Final = Refusal.CANCEL


class UnexpectedQuestion(AssertionError):
    """The server asks something that the test has no answer to."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it has reached the client."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    key: str | None = None
    """The name of the input request; legacy revisions have none."""

    @property
    def message(self) -> str:
        """What the user, or the client's model, reads."""
        if self.method != "sampling/createMessage":
            return str(self.params.get("message", ""))
        contents = [each["content"] for each in self.params["messages"]]
        return "\n".join(each["text"] for each in contents if "text" in each)


Answers = Iterable[Any] | Mapping[str, Any] | Callable[[Asked], Any]


class ScriptedDoor(InlineDoor):
    """The way into the endpoint of a client that answers while a call waits: legacy revisions.

    In the place of the view's :class:`InlineDoor` it makes ``answers`` good for them, too.
    """

    def __init__(self, user: ScriptedUser) -> None:
        super().__init__()
        self._user = user

    async def answer(self, posted: Posted) -> Reply:
        """See :class:`django_mcp.transport.calls.Door`."""
        peer = ScriptedPeer(self._user, listens=posted.takes_stream)
        outcomes = [(item, await item.outcome(peer, self.runner)) for item in posted.items]
        return posted.reply([posted.answer(*each) for each in outcomes], peer.said)


class ScriptedPeer(Collected):
    """A client that answers at once, from a script."""

    answers = True

    def __init__(self, user: ScriptedUser, *, listens: bool) -> None:
        super().__init__(listens=listens)
        self._user = user

    def ask(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """See :class:`django_mcp.server.ports.Peer`."""
        self.check()
        return self._user.answer(Asked(method, params))

    async def aask(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """See :class:`django_mcp.server.ports.Peer`."""
        return self.ask(method, params, seconds)


class ScriptedUser:
    """Gives ``answers``: one after the other, or by the question, or as a function says.

    The keys of a mapping are the keys of input requests, or messages, or how these begin.
    """

    def __init__(self, answers: Answers) -> None:
        self.asked: list[Asked] = []
        """Every question so far."""
        self.at_a_loss: UnexpectedQuestion | None = None
        """What it had no answer to; a tool may have taken that for an error of its own."""
        self._answers = answers
        self._following: Iterator[Any] = iter(answers if isinstance(answers, Iterable) else ())

    def answer(self, asked: Asked) -> dict[str, Any]:
        """Return the result with which the client answers."""
        self.asked.append(asked)
        return _result(asked, self._choose(asked))

    def _choose(self, asked: Asked) -> Any:
        if isinstance(self._answers, Mapping):
            for name, answer in self._answers.items():
                if name == asked.key or asked.message.startswith(name):
                    return answer
        elif callable(self._answers):
            return self._answers(asked)
        else:
            for answer in self._following:
                return answer
        name = asked.key or asked.method
        self.at_a_loss = UnexpectedQuestion(f"No answer to {name}: {asked.params}")
        raise self.at_a_loss


def _result(asked: Asked, answer: Any) -> dict[str, Any]:
    if isinstance(answer, Result):
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    if asked.method == "roots/list":
        return {"roots": [{"uri": str(uri)} for uri in answer]}
    if asked.method == "sampling/createMessage":
        text = {"type": "text", "text": str(answer)}
        return {"role": "assistant", "content": text, "model": "scripted", "stopReason": "endTurn"}
    if isinstance(answer, Refusal):
        return {"action": answer.value}
    if asked.params.get("mode") == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": _content(asked, to_jsonable_python(answer))}


def _content(asked: Asked, answer: Any) -> dict[str, Any]:
    names = list(asked.params["requestedSchema"]["properties"])
    if isinstance(answer, dict):
        return answer
    return {names[0]: answer} if names else {}
