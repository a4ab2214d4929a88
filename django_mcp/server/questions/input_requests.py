"""A question as it goes over the wire in one revision, and the way back to its answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ...protocol.versions import NEWEST_LEGACY, Revision

FORM: Final[Mapping[str, Any]] = {"elicitation": {"form": {}}}
"""The capability to show the user a form."""
URL: Final[Mapping[str, Any]] = {"elicitation": {"url": {}}}
"""The capability to send the user to a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequest:
    """A request to the client (2026-07-28, basic/patterns/mrtr, "InputRequests")."""

    method: str
    params: dict[str, Any] | None
    identity: Any
    """What makes it the same question when it is asked again."""
    name: str
    """Its name in messages."""
    describe: Callable[[], str]
    """Return all that somebody needs to know to answer it elsewhere."""
    required: dict[str, Any]
    """The capabilities that the client must have declared."""
    is_supported: bool
    """Whether it has, and the revision knows such a question."""
    read: Callable[[Any], Any]
    """Return the value of an answer; raises :class:`InvalidAnswer`."""
    alternative: str = "Ask in its place, and call again with the answer if an argument takes it"
    """What can be done where the client cannot be asked."""

    @property
    def digest(self) -> str:
        """Identifies the question, so that no answer counts for another one."""
        return digest_of([self.method, self.identity])

    def with_problems(self, problems: Sequence[str]) -> InputRequest:
        """Return the request with what was wrong with the last answer."""
        if not problems or self.params is None or "message" not in self.params:
            return self
        message = "\n\n".join((self.params["message"], "\n".join(problems)))
        return replace(self, params={**self.params, "message": message})

    def as_object(self) -> dict[str, Any]:
        """Return the request as a member of ``inputRequests``."""
        request: dict[str, Any] = {"method": self.method}
        return request if self.params is None else {**request, "params": self.params}


def digest_of(value: Any) -> str:
    """Return a digest of a JSON value, whatever the order of its members."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def declares(
    capabilities: Mapping[str, Any], revision: Revision, required: Mapping[str, Any]
) -> bool:
    """Return whether a client that has declared ``capabilities`` has all that are required."""
    for feature, options in required.items():
        declared = capabilities.get(feature)
        if not isinstance(declared, dict):
            return False
        if feature == "elicitation" and options == FORM[feature]:
            return _takes_forms(declared, revision)
        if any(declared.get(option) is None for option in options):
            return False
    return True


def fills_in_forms(capabilities: Mapping[str, Any], revision: Revision) -> bool:
    """Return whether a client's user can be asked to fill in a form."""
    return revision.elicitation and declares(capabilities, revision, FORM)


def revision_of_urls(capabilities: Mapping[str, Any], revision: Revision) -> Revision | None:
    """Return the revision in which a client's user can be sent to a page, if that is possible.

    Codex agrees on 2025-06-18, which has no such question, and declares that it takes it: it is
    asked as the next revision has it.
    """
    if not (revision.elicitation and declares(capabilities, revision, URL)):
        return None
    return revision if revision.elicitation_modes else NEWEST_LEGACY


def _takes_forms(declared: Mapping[str, Any], revision: Revision) -> bool:
    # 2025-11-25, client/elicitation, "Capabilities": an empty object means form mode alone. Before
    # there was no other.
    if not revision.elicitation_modes:
        return True
    return declared.get("form") is not None or declared.get("url") is None
