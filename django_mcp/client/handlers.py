"""What the server may ask of the client: the functions that answer, and what they are declared as.

Nothing is declared that has no function, and what is not declared is refused.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ListRootsResult,
    LoggingMessageNotificationParams,
    Root,
)
from pydantic import BaseModel, ValidationError

from ..protocol.bounded import validate
from ..protocol.errors import ErrorCode, MCPError, internal_error, invalid_params
from . import usercode

log = logging.getLogger("django_mcp.client")

# Of other schemes some run code, as javascript: does, or open other programs. Browsers overlook
# white space and control characters, and take a backslash for a slash.
_WEB_ADDRESS: Final = re.compile(
    r"https?://[^\x00-\x20\x7f\\/?#][^\x00-\x20\x7f\\]*", re.IGNORECASE
)

OnElicit = Callable[[ElicitRequestFormParams], Any]
"""Answers a form: with the fields, with ``None`` to decline, or with an ``ElicitResult``."""
OnElicitURL = Callable[[ElicitRequestURLParams], Any]
"""Answers whether the user has gone to a page: ``True``, ``False``, or an ``ElicitResult``.

The page's address begins with ``http://`` or ``https://``; others are refused.
"""
OnSample = Callable[[CreateMessageRequestParams], Any]
"""Answers as a model does: with a ``CreateMessageResult``, or one with tools."""
Roots = Iterable[Root | str] | Callable[[], Any]
"""Where the client works: roots or their URIs, or a function that returns them."""
OnLog = Callable[[LoggingMessageNotificationParams], Any]
"""Takes a log message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """The functions that answer a server's questions; each plain or a coroutine function."""

    on_elicit: OnElicit | None = None
    on_elicit_url: OnElicitURL | None = None
    on_sample: OnSample | None = None
    sampling_tools: bool = False
    roots: Roots | None = None
    on_log: OnLog | None = None

    @property
    def any(self) -> bool:
        """Whether the server may have anything to say beside results."""
        return bool(self.capabilities() or self.on_log)

    def capabilities(self) -> dict[str, Any]:
        """Return what the client declares."""
        modes = {"form": self.on_elicit, "url": self.on_elicit_url}
        elicitation: dict[str, Any] = {
            mode: {} for mode, handler in modes.items() if handler is not None
        }
        sampling: dict[str, Any] = {"tools": {}} if self.sampling_tools else {}
        return {
            **({"elicitation": elicitation} if elicitation else {}),
            **({"sampling": sampling} if self.on_sample is not None else {}),
            **({"roots": {}} if self.roots is not None else {}),
        }

    async def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result that answers a question; raises ``MCPError`` where there is none."""
        try:
            match method:
                case "ping":
                    return {}
                case "elicitation/create":
                    return await self._elicit(params)
                case "sampling/createMessage" if self.on_sample is not None:
                    return await self._sample(self.on_sample, params)
                case "roots/list" if self.roots is not None:
                    return await self._list_roots(self.roots)
        except ValidationError as error:
            raise invalid_params(f"Not valid: {error.errors()[0]['msg']}") from None
        raise not_found(method)

    async def _elicit(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if params.get("mode") == "url":
            if self.on_elicit_url is None:
                raise not_found("elicitation/create in mode url")
            asked = validate(ElicitRequestURLParams, params)
            if not _WEB_ADDRESS.fullmatch(asked.url):
                raise invalid_params("Only addresses of http: and https: are opened")
            return dumped(_consent(await usercode.run(self.on_elicit_url, asked)))
        if self.on_elicit is None:
            raise not_found("elicitation/create in mode form")
        form = validate(ElicitRequestFormParams, params)
        return dumped(_filled(await usercode.run(self.on_elicit, form), form))

    async def _sample(self, sample: OnSample, params: Mapping[str, Any]) -> dict[str, Any]:
        asked = validate(CreateMessageRequestParams, params)
        answer = await usercode.run(sample, asked)
        if not isinstance(answer, CreateMessageResult | CreateMessageResultWithTools):
            raise TypeError(f"on_sample returned {type(answer).__name__}, no CreateMessageResult")
        return dumped(answer)

    async def _list_roots(self, roots: Roots) -> dict[str, Any]:
        given = await usercode.run(roots) if callable(roots) else roots
        listed = [
            Root.model_validate({"uri": each}) if isinstance(each, str) else each for each in given
        ]
        return dumped(ListRootsResult(roots=listed))

    async def hear_log(self, params: Mapping[str, Any]) -> None:
        """Hand over a log message."""
        if self.on_log is None:
            return
        try:
            message = validate(LoggingMessageNotificationParams, params)
        except ValidationError:
            log.warning("The server sent a log message of the wrong shape")
            return
        await usercode.tell(self.on_log, message)


async def answered(handlers: Handlers, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer; whatever goes wrong in a function becomes an error for the server."""
    try:
        return await handlers.answer(method, params)
    except MCPError:
        raise
    except Exception:
        log.exception("The function that answers %s failed", method)
        raise internal_error("The client could not answer") from None


def not_found(method: str) -> MCPError:
    """Return the error for what this client does not do."""
    return MCPError(ErrorCode.METHOD_NOT_FOUND, f"This client does not support {method}")


def dumped(model: BaseModel) -> dict[str, Any]:
    """Return a model as it is sent."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _consent(answer: Any) -> ElicitResult:
    if isinstance(answer, ElicitResult):
        return answer
    return ElicitResult(action="accept" if answer else "decline")


def _filled(answer: Any, form: ElicitRequestFormParams) -> ElicitResult:
    """Return the answer to a form, with the defaults of the fields that it leaves out.

    2025-11-25, client/elicitation, "Requested Schema": clients that support defaults fill them in.
    """
    if answer is None:
        return ElicitResult(action="decline")
    result = answer if isinstance(answer, ElicitResult) else _accepted(answer)
    if result.action != "accept":
        return result
    properties = form.requested_schema.get("properties")
    defaults = {
        name: schema["default"]
        for name, schema in (properties if isinstance(properties, dict) else {}).items()
        if isinstance(schema, dict) and "default" in schema
    }
    return ElicitResult(action="accept", content={**defaults, **(result.content or {})})


def _accepted(answer: Any) -> ElicitResult:
    content = answer.model_dump(mode="json") if isinstance(answer, BaseModel) else answer
    return ElicitResult(action="accept", content=content)
