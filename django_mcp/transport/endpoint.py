"""One HTTP request, from the door to the user's function and back, top to bottom.

Written once for both doors: everything that waits is behind ``runner`` and ``request.read``. At the
view these never suspend, and the whole runs inline; at the mount they do.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from ..conf import get_settings
from ..protocol import headers, lifecycle, messages
from ..protocol.errors import ErrorCode, MCPError, internal_error
from ..protocol.lifecycle import Sender
from ..protocol.messages import Batch, Invalid, Message, Notification, RequestId, Response
from ..protocol.versions import NEWEST_LEGACY, Era, Revision
from ..server.dispatcher import dispatch, notify
from ..server.exchange import Exchange
from ..server.ports import Policy, Ports, Principal, Runner, SessionInfo
from ..store.sessions import SessionStore
from . import cors, gate, replies
from .http import Endpoint, Reply, Request
from .replies import Forbidden, Refused, refuse
from .usercode import DjangoBridge

logger = logging.getLogger("django_mcp.request")

#: Refusals in the course of things: clients ask for credentials, for a stream, after a session.
_ORDINARY = (401, 404, 405)


async def respond(request: Request, endpoint: Endpoint, runner: Runner) -> Reply:
    """Answer any HTTP request to an endpoint. Never raises."""
    try:
        gate.check_source(request)
        if request.method == "OPTIONS":
            return cors.preflight(request)
        reply = await _authenticated(request, endpoint, runner)
    except Exception as failure:
        reply = _failed(failure, None, request)
    if request.method == "HEAD":
        reply = replace(reply, body=b"")
    return cors.share(request, reply)


async def _authenticated(request: Request, endpoint: Endpoint, runner: Runner) -> Reply:
    try:
        principal = await gate.authenticate(request, endpoint, runner)
    except Forbidden as refused:
        if request.method != "POST":
            raise
        # Who is known is told with the request's id, unlike a stranger whose body is not read.
        message = messages.parse(await gate.read_body(request))
        return _failed(refused, _id_of(message), request)
    if request.method == "POST":
        return await _post(request, endpoint, principal, runner)
    if request.method == "DELETE":
        return await _delete(request, endpoint, principal, runner)
    raise refuse(405, f"{request.method} is not supported here", Allow=cors.METHODS)


async def _post(
    request: Request, endpoint: Endpoint, principal: Principal, runner: Runner
) -> Reply:
    gate.check_form(request)
    message = messages.parse(await gate.read_body(request))
    visit = _Visit(request, endpoint, principal, runner)
    try:
        reply = await visit.answer(message)
    except Exception as failure:
        # From here on the id is known, and every error carries it.
        reply = _failed(failure, _id_of(message), request)
    if reply.body and not headers.acceptable(request.headers.get("Accept")).json:
        return replies.as_events(reply)
    return reply


async def _delete(
    request: Request, endpoint: Endpoint, principal: Principal, runner: Runner
) -> Reply:
    lifecycle.check_legacy_version(request.headers.get(headers.PROTOCOL_VERSION))
    secret = gate.session_secret(request)
    await runner.blocking(SessionStore(endpoint.server.name).end, secret, principal)
    return replies.ended()


class _Visit:
    """One POST of an authenticated caller."""

    def __init__(
        self, request: Request, endpoint: Endpoint, principal: Principal, runner: Runner
    ) -> None:
        self.request = request
        self.endpoint = endpoint
        self.principal = principal
        self.runner = runner

    async def answer(self, message: Message | Batch | Invalid) -> Reply:
        """Answer what the body holds."""
        if isinstance(message, Invalid):
            raise message.error
        era = lifecycle.era_of(message, self.request.headers.get(headers.PROTOCOL_VERSION))
        if era is Era.MODERN:
            return await self._modern(message)
        if isinstance(message, messages.Request) and message.method == "initialize":
            return await self._dispatch(message, NEWEST_LEGACY, Sender(), None)
        session = await gate.enter_session(self.request, self.endpoint, self.principal, self.runner)
        if isinstance(message, Batch):
            return await self._batch(message, session)
        return await self._legacy(message, session)

    async def _modern(self, message: Message | Batch) -> Reply:
        if isinstance(message, Notification):
            # The era defines no notification to servers over HTTP, so there is nothing to do.
            return replies.accepted()
        if not isinstance(message, messages.Request):
            raise MCPError(ErrorCode.INVALID_REQUEST, "Send one request or notification")
        revision, sender = lifecycle.read_modern(message, self.request.headers)
        return await self._dispatch(message, revision, sender, None)

    async def _legacy(self, message: Message, session: SessionInfo) -> Reply:
        if isinstance(message, Notification):
            await notify(message, session, self._ports(), self.runner)
            return replies.accepted()
        if isinstance(message, Response):
            # Nothing is ever asked of this client, so the answer to nothing is dropped.
            return replies.accepted()
        return await self._dispatch(message, session.revision, session.sender, session)

    async def _batch(self, batch: Batch, session: SessionInfo) -> Reply:
        if not session.revision.batches:
            raise MCPError(
                ErrorCode.INVALID_REQUEST,
                f"Revision {session.revision.name} has no batches; send one message per POST",
            )
        for item in batch.items:
            # An error without an id has no place in a 200, so the batch is refused as a whole,
            # before anything in it has run.
            if isinstance(item, Invalid) and item.id is None:
                raise item.error
        answers = [await self._batch_item(item, session) for item in batch.items]
        return replies.batch([answer for answer in answers if answer is not None])

    async def _batch_item(self, item: Message | Invalid, session: SessionInfo) -> bytes | None:
        if isinstance(item, Invalid):
            return replies.encode(item.id, item.error)
        if not isinstance(item, messages.Request):
            await self._legacy(item, session)
            return None
        if item.method == "initialize":
            # 2025-03-26, basic/lifecycle, "Initialization": never part of a batch.
            refusal = MCPError(ErrorCode.INVALID_REQUEST, "initialize must not be part of a batch")
            return replies.encode(item.id, refusal)
        exchange = self._exchange(item, session.revision, session.sender, session)
        return replies.encode(item.id, await dispatch(exchange, self.runner))

    async def _dispatch(
        self,
        message: messages.Request,
        revision: Revision,
        sender: Sender,
        session: SessionInfo | None,
    ) -> Reply:
        exchange = self._exchange(message, revision, sender, session)
        outcome = await dispatch(exchange, self.runner)
        return replies.answer(message.id, outcome, revision.era)

    def _exchange(
        self,
        message: messages.Request,
        revision: Revision,
        sender: Sender,
        session: SessionInfo | None,
    ) -> Exchange:
        return Exchange(
            server=self.endpoint.server,
            request=message,
            revision=revision,
            sender=sender,
            principal=self.principal,
            session=session,
            headers=self.request.headers,
            ports=self._ports(),
            http_request=self.request.django,
        )

    def _ports(self) -> Ports:
        settings = get_settings()
        policy = Policy(
            page_size=settings.page_size,
            strict_arguments=settings.strict_arguments,
            list_ttl_ms=settings.list_ttl_seconds * 1000,
            public=gate.is_public(self.endpoint),
        )
        return Ports(SessionStore(self.endpoint.server.name), DjangoBridge(), policy)


def _failed(failure: Exception, request_id: RequestId | None, request: Request) -> Reply:
    if isinstance(failure, Refused):
        error, status, extra = failure.error, failure.status, failure.headers
    elif isinstance(failure, MCPError):
        error, status, extra = failure, replies.gate_status(failure), {}
    else:
        logger.error("%s crashed", request.method, exc_info=failure)
        return replies.error(request_id, internal_error(), 500 if request_id is None else 200)
    level = logging.INFO if status in _ORDINARY else logging.WARNING
    logger.log(level, "%s refused with %d: %s", request.method, status, error.message)
    return replies.error(request_id, error, status, **extra)


def _id_of(message: Message | Batch | Invalid) -> RequestId | None:
    return message.id if isinstance(message, (messages.Request, Invalid)) else None
