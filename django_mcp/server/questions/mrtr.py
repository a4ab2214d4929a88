"""Multi round-trip requests (MRTR): what a call has asked so far, and what the client answered.

2026-07-28, basic/patterns/mrtr: the client sends the same request again, with the answers and the
signed state of the round before. The function runs from its beginning, and its questions are
answered from here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

from django.core import signing

from ...conf import get_settings
from ...current_partition import current_partition
from ...protocol.errors import invalid_params
from ..errors import InputRequired, QuestionFailed, ToolError
from ..exchange import Exchange
from .input_requests import InputRequest, digest_of

logger = logging.getLogger("django_mcp.server")

_SALT: Final = "django_mcp.requestState.1"
"""To be counted up with the form of the state, so that no other form is taken for it."""

MAX_ROUNDS: Final = 8
"""How often one call may come back with questions."""


class StateRefused(Exception):
    """A signed state that was not signed here, was changed, or has expired; the text says which."""


@dataclass(frozen=True, slots=True)
class CallIdentity:
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
            "server": self.exchange.server_name,
            "method": request.method,
            "target": self.target,
            "arguments": dict(self.arguments),
        }
        return {part: digest_of(value) for part, value in parts.items()}


class Rounds:
    """The rounds of one call up to this one; raises :class:`MCPError` for a state that is not its.

    ``required`` is what is still to be answered.
    """

    def __init__(self, call: CallIdentity) -> None:
        self._call = call
        self._number = 0
        # Which question each key stood for, and what came back: several where some did not fit.
        self._digests: dict[str, str] = {}
        self._answers: dict[str, list[Any]] = {}
        self.required: dict[str, InputRequest] = {}
        self.state: UUID | None = None
        """What the call came with, if that counts once."""
        self._stateless: Mapping[str, Any] = {}
        responses = responses_of(call.exchange)
        state = call.exchange.request.params.get("requestState")
        if state is not None:
            self._restore(_verified(state, call), responses)
        elif not call.once:
            # A client that keeps no state may answer all the same. Nobody could tell whether it
            # has done so before. What is never asked for does not get into the state.
            self._stateless = responses

    def answer(self, key: str, request: InputRequest, attempt: int) -> Any:
        """Return the answer to an attempt to ask; raises :class:`InputRequired` without one."""
        digest = request.digest
        if key in self._stateless:
            self._answers.setdefault(key, [self._stateless[key]])
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
        if self.state is None:
            return
        # Servers are made before there are models.
        from ...store.access.redeemed_states import redeem  # noqa: PLC0415

        if redeem(self.state):
            return
        method = self._call.exchange.request.method
        logger.warning("%s: requestState refused: it has been used", method)
        raise ToolError(
            "This answer has been used: the call has run with it, or is running now, whether or "
            "not its result arrived. Look whether it has had its effect. To do it once more, call "
            "again, without the answer; it will be asked for anew."
        )

    def result(self) -> dict[str, Any]:
        """Return the body of the result that asks the client."""
        if self._number >= MAX_ROUNDS:
            raise QuestionFailed(
                f"This call has come back with questions {MAX_ROUNDS} times, and may not again."
            )
        state = {
            "bound": self._call.digests(),
            "number": self._number + 1,
            "digests": self._digests,
            "answers": self._answers,
            "open": list(self.required),
        }
        if self._call.once:
            state["once"] = uuid4().hex
        return {
            "inputRequests": {key: each.as_object() for key, each in self.required.items()},
            "requestState": sign(state),
        }

    def _restore(self, state: Mapping[str, Any], responses: Mapping[str, Any]) -> None:
        if self._call.once:
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


def sign(state: dict[str, Any]) -> str:
    """Return ``state`` as text that is signed with ``SECRET_KEY``, and has the time."""
    return signing.dumps(state, salt=_salt(), compress=True)


def verify(text: str) -> dict[str, Any]:
    """Return a state that was signed, not long ago; raises :class:`StateRefused`.

    ``SECRET_KEY_FALLBACKS`` are accepted too.
    """
    max_age = get_settings().state_max_age_seconds
    try:
        state: dict[str, Any] = signing.loads(text, salt=_salt(), max_age=max_age)
    except signing.BadSignature as error:
        raise StateRefused(str(error)) from error
    return state


def _salt() -> str:
    # What was signed in one partition was not signed in another.
    partition = current_partition()
    return f"{_SALT}\0{partition}" if partition else _SALT


def _verified(text: str, call: CallIdentity) -> Mapping[str, Any]:
    try:
        state = verify(text)
    except StateRefused as refused:
        reason = str(refused)
    else:
        other = [part for part, digest in call.digests().items() if state["bound"][part] != digest]
        if not other and (not call.once or "once" in state):
            return state
        belongs = f"it belongs to another {', another '.join(other)}"
        reason = belongs if other else "it would count more than once"
    # What exactly is wrong helps nobody but those who forge it.
    logger.warning("%s: requestState refused: %s", call.exchange.request.method, reason)
    raise invalid_params("requestState is not valid for this request; start again without it")
