"""What a call in the modern era has asked so far, and what came back: sealed between two rounds.

2026-07-28, basic/patterns/mrtr: the client sends the same request again, with the answers and the
state of the round before. The function runs from its beginning, and finds its answers here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

from ...protocol.errors import invalid_params
from ..calling import Result
from ..errors import QuestionFailed, ToolError
from ..sealing import StateRefused, seal, unseal
from .requests import InputRequest, digest_of

if TYPE_CHECKING:
    from ..exchange import Exchange

logger = logging.getLogger("django_mcp.server")

MAX_ROUNDS: Final = 8
"""How often one call may come back with questions."""


class InputRequired(BaseException):
    """The call cannot go on before the client has answered.

    Control flow, like ``KeyboardInterrupt``: user code that catches every ``Exception`` does not
    swallow it, and it leaves through the savepoint, so that what the function wrote is rolled back
    before it runs again.
    """


@dataclass(frozen=True, slots=True)
class Bound:
    """What a state belongs to; it is refused for anything else."""

    exchange: Exchange
    target: str
    arguments: Mapping[str, Any]
    once: bool = False
    """Whether each state counts for one call only."""

    def digests(self) -> dict[str, str]:
        """Return a digest of each part."""
        principal, request = self.exchange.principal, self.exchange.request
        parts = {
            "principal": [principal.user_id, principal.client_id],
            "server": self.exchange.server.name,
            "method": request.method,
            "target": self.target,
            "arguments": dict(self.arguments),
        }
        return {part: digest_of(value) for part, value in parts.items()}


class Rounds:
    """The rounds of one call up to this one; raises :class:`MCPError` for a state that is not its.

    ``required`` is what is still to be answered.
    """

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._number = 0
        # Which question each key stood for, and what came back: several where some did not fit.
        self._digests: dict[str, str] = {}
        self._answers: dict[str, list[Any]] = {}
        self.required: dict[str, InputRequest] = {}
        self.state: UUID | None = None
        """What the call came with, if that counts once."""
        self._unasked: Mapping[str, Any] = {}
        responses = responses_of(bound.exchange)
        state = bound.exchange.request.params.get("requestState")
        if state is not None:
            self._restore(_unsealed(state, bound), responses)
        elif not bound.once:
            # A client that keeps no state may answer all the same. Nobody could tell whether it
            # has done so before. What is never asked for does not get into the state.
            self._unasked = responses

    def answer(self, key: str, request: InputRequest, attempt: int) -> Any:
        """Return the answer to an attempt to ask; raises :class:`InputRequired` without one."""
        digest = request.digest
        if key in self._unasked:
            self._answers.setdefault(key, [self._unasked[key]])
        if self._digests.setdefault(key, digest) != digest:
            # It has been reworded since: whoever answered did not answer this.
            self._digests[key] = digest
            self._answers.pop(key, None)
        answers = self._answers.get(key, ())
        if attempt < len(answers):
            return answers[attempt]
        self.required[key] = request
        raise InputRequired

    def redeem(self) -> None:
        """Use up the state that the call came with; raises :class:`ToolError` if it has been."""
        exchange = self._bound.exchange
        # Servers are made before there are models.
        from ...store.access.redeemed_states import redeem  # noqa: PLC0415

        if self.state is None or redeem(self.state):
            return
        logger.warning("%s: requestState refused: it has been used", exchange.request.method)
        raise ToolError(
            "This answer has been used: the call has run with it, or is running now, whether or "
            "not its result arrived. Look whether it has had its effect. To do it once more, call "
            "again, without the answer; it will be asked for anew."
        )

    def result(self) -> Result:
        """Return the result that asks the client."""
        if self._number >= MAX_ROUNDS:
            raise QuestionFailed(
                f"This call has come back with questions {MAX_ROUNDS} times, and may not again."
            )
        state = {
            "bound": self._bound.digests(),
            "number": self._number + 1,
            "digests": self._digests,
            "answers": self._answers,
            "open": list(self.required),
        }
        if self._bound.once:
            state["once"] = uuid4().hex
        body = {
            "inputRequests": {key: each.as_object() for key, each in self.required.items()},
            "requestState": seal(state),
        }
        return Result(body, type="input_required")

    def _restore(self, state: Mapping[str, Any], responses: Mapping[str, Any]) -> None:
        if self._bound.once:
            self.state = UUID(state["once"])
        self._number = state["number"]
        self._digests = dict(state["digests"])
        self._answers = {key: list(answers) for key, answers in state["answers"].items()}
        for key in state["open"]:
            if key in responses:
                self._answers.setdefault(key, []).append(responses[key])


def responses_of(exchange: Exchange) -> dict[str, Any]:
    """Return the ``inputResponses`` of a request, by key; empty where there are none."""
    responses = exchange.request.params.get("inputResponses")
    return responses if exchange.revision.modern and isinstance(responses, dict) else {}


def _unsealed(text: str, bound: Bound) -> Mapping[str, Any]:
    try:
        state = unseal(text)
    except StateRefused as refused:
        reason = str(refused)
    else:
        other = [part for part, digest in bound.digests().items() if state["bound"][part] != digest]
        if not other and (not bound.once or "once" in state):
            return state
        belongs = f"it belongs to another {', another '.join(other)}"
        reason = belongs if other else "it would count more than once"
    # What exactly is wrong helps nobody but those who forge it.
    logger.warning("%s: requestState refused: %s", bound.exchange.request.method, reason)
    raise invalid_params("requestState is not valid for this request; start again without it")
