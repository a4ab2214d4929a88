"""What the server may ask of the client, and the functions that answer.

Nothing is declared that has no function, and what is not declared is refused.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import nullcontext
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
from ..protocol.messages import (
    Notification,
    Request,
    RequestId,
    error_response,
    result_response,
)
from . import user_functions
from .bounds import Limits
from .errors import ConnectionFailed, OutcomeUnknown, ServerBusy, SessionGone
from .outgoing_request import OutgoingRequest
from .user_functions import BackgroundTasks

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
        """Whether there is a function for anything that a server sends beside results."""
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
            return to_wire(_url_result(await user_functions.run(self.on_elicit_url, asked)))
        if self.on_elicit is None:
            raise not_found("elicitation/create in mode form")
        form = validate(ElicitRequestFormParams, params)
        return to_wire(_form_result(await user_functions.run(self.on_elicit, form), form))

    async def _sample(self, sample: OnSample, params: Mapping[str, Any]) -> dict[str, Any]:
        asked = validate(CreateMessageRequestParams, params)
        answer = await user_functions.run(sample, asked)
        if not isinstance(answer, CreateMessageResult | CreateMessageResultWithTools):
            raise TypeError(f"on_sample returned {type(answer).__name__}, no CreateMessageResult")
        return to_wire(answer)

    async def _list_roots(self, roots: Roots) -> dict[str, Any]:
        given = await user_functions.run(roots) if callable(roots) else roots
        listed = [
            Root.model_validate({"uri": each}) if isinstance(each, str) else each for each in given
        ]
        return to_wire(ListRootsResult(roots=listed))

    async def handle_log(self, params: Mapping[str, Any]) -> None:
        """Hand a log message to ``on_log``."""
        if self.on_log is None:
            return
        try:
            message = validate(LoggingMessageNotificationParams, params)
        except ValidationError:
            log.warning("The server sent a log message of the wrong shape")
            return
        await user_functions.report(self.on_log, message)


class ServerRequests:
    """The requests of one legacy session's server that are being answered.

    ``post`` sends a message in the session, and ``slots`` bounds how many are answered at once.
    """

    def __init__(
        self,
        handlers: Handlers,
        limits: Limits,
        tasks: BackgroundTasks,
        slots: asyncio.Semaphore,
        post: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        self._handlers = handlers
        self._limits = limits
        self._tasks = tasks
        self._slots = slots
        self._post = post
        self._running: dict[tuple[type, RequestId], asyncio.Task[None]] = {}

    async def start(self, request: Request, within: OutgoingRequest | None) -> None:
        """Begin to answer a request; ``within`` is the one for whose sake it was sent.

        Waits while too many are being answered: the server has to wait too.
        """
        await self._slots.acquire()
        task = self._tasks.start(self._answer(request, within), within_call=within is not None)
        key = _key(request.id)
        self._running[key] = task
        task.add_done_callback(lambda _: self._on_done(key, task))
        if within is not None:
            within.server_requests.add(task)

    def cancel(self, notification: Notification) -> None:
        """Stop to answer a request that the server has cancelled."""
        task = self._running.get(_key(notification.params.get("requestId")))
        if task is not None:
            task.cancel()

    def _on_done(self, key: tuple[type, RequestId], task: asyncio.Task[None]) -> None:
        self._slots.release()
        if self._running.get(key) is task:
            del self._running[key]

    async def _answer(self, request: Request, within: OutgoingRequest | None) -> None:
        with within.deadline.paused() if within else nullcontext():
            response = await self._response(request)
        try:
            await self._send(response)
        except SessionGone:
            log.info("%s is not answered: its session has ended", request.method)
        except Exception as error:
            log.warning("The answer to %s did not reach the server: %s", request.method, error)

    async def _response(self, request: Request) -> dict[str, Any]:
        try:
            result = await self._handlers.answer(request.method, request.params)
        except MCPError as error:
            return error_response(request.id, error)
        except Exception:
            log.exception("The function that answers %s failed", request.method)
            return error_response(request.id, internal_error("The client could not answer"))
        return result_response(request.id, result)

    async def _send(self, response: Mapping[str, Any]) -> None:
        """Send a response, again while it may not have arrived: it counts once, by its id."""
        failures = 0
        while True:
            try:
                await self._post(response)
            except (ConnectionFailed, ServerBusy, OutcomeUnknown) as error:
                failures += 1
                if failures > self._limits.reconnects:
                    raise
                wished = error.retry_after if isinstance(error, ServerBusy) else None
                await asyncio.sleep(self._limits.pause(failures) if wished is None else wished)
            else:
                return


def _key(request_id: Any) -> tuple[type, RequestId]:
    # 1 and "1" are two ids, and what is no id is none of them.
    return type(request_id), request_id if isinstance(request_id, int | str) else ""


def not_found(method: str) -> MCPError:
    """Return the error for what this client does not do."""
    return MCPError(ErrorCode.METHOD_NOT_FOUND, f"This client does not support {method}")


def to_wire(model: BaseModel) -> dict[str, Any]:
    """Return a model as it is sent."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _url_result(answer: Any) -> ElicitResult:
    if isinstance(answer, ElicitResult):
        return answer
    return ElicitResult(action="accept" if answer else "decline")


def _form_result(answer: Any, form: ElicitRequestFormParams) -> ElicitResult:
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
