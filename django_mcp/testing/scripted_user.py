"""Answers the questions of a server in a test, as a user, a model and their client would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from mcp_types import Result
from pydantic_core import to_jsonable_python

from ..running.peers import BufferedPeer
from ..running.user_code import InlineRunner

CAPABILITIES: Final[dict[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}
"""What a client declares that answers everything."""


class ElicitAction(Enum):
    """What a user may do instead of answering."""

    DECLINE = "decline"
    CANCEL = "cancel"


DECLINE: Final = ElicitAction.DECLINE
CANCEL: Final = ElicitAction.CANCEL


class UnexpectedQuestion(AssertionError):
    """The server asks what ``answers`` has no answer to: add one, or do not let it ask."""


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
"""Answers in order, by the question, or as a function of the question."""


class ScriptedRunner(InlineRunner):
    """Runs the calls of a client that answers while a call waits: legacy revisions."""

    can_request = True

    def __init__(self, user: ScriptedUser) -> None:
        super().__init__()
        self._user = user

    def peer(self, *, can_notify: bool) -> ScriptedPeer:
        """Return the client of the calls of a POST, which the scripted user answers for."""
        return ScriptedPeer(self._user, can_notify=can_notify)


class ScriptedPeer(BufferedPeer):
    """A client that answers at once, from a script."""

    can_request = True

    def __init__(self, user: ScriptedUser, *, can_notify: bool) -> None:
        super().__init__(can_notify=can_notify)
        self._user = user

    def request(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the answer of the script."""
        self.check_not_stopped()
        return self._user.answer(Asked(method, params))

    async def arequest(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Do as :meth:`request`, without a thread that waits."""
        return self.request(method, params, seconds)


class ScriptedUser:
    """Gives ``answers``: one after the other, or by the question, or as a function returns them.

    The keys of a mapping are the keys of input requests, or messages, or how these begin. Raises
    :class:`UnexpectedQuestion` for a question that has none.
    """

    def __init__(self, answers: Answers) -> None:
        self.asked: list[Asked] = []
        """Every question so far."""
        self.unexpected: UnexpectedQuestion | None = None
        """The last one without an answer; a tool may have taken that for an error of its own."""
        self._answers = answers
        self._remaining: Iterator[Any] = iter(answers if isinstance(answers, Iterable) else ())

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
            for answer in self._remaining:
                return answer
        name = asked.key or asked.method
        self.unexpected = UnexpectedQuestion(f"No answer to {name}: {asked.params}")
        raise self.unexpected


def _result(asked: Asked, answer: Any) -> dict[str, Any]:
    if isinstance(answer, Result):
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    if asked.method == "roots/list":
        return {"roots": [{"uri": str(uri)} for uri in answer]}
    if asked.method == "sampling/createMessage":
        text = {"type": "text", "text": str(answer)}
        return {"role": "assistant", "content": text, "model": "scripted", "stopReason": "endTurn"}
    if isinstance(answer, ElicitAction):
        return {"action": answer.value}
    if asked.params.get("mode") == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": _content(asked, to_jsonable_python(answer))}


def _content(asked: Asked, answer: Any) -> dict[str, Any]:
    names = list(asked.params["requestedSchema"]["properties"])
    if isinstance(answer, dict):
        return answer
    return {names[0]: answer} if names else {}
