"""One HTTP request, from the door to the user's function and back, top to bottom.

Written once for all doors: everything that waits is behind ``door`` and ``request.read``. Under
WSGI these never suspend, and the whole runs inline; on an event loop they do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..conf import get_settings
from ..principal import Principal
from ..protocol import headers, lifecycle, messages
from ..protocol.errors import INTERNAL, ErrorCode, Failed, MCPError, TooManyRequests, TryLater
from ..protocol.lifecycle import Sender, SessionInfo
from ..protocol.messages import Batch, Invalid, Message, Notification, RequestId, Response
from ..protocol.versions import NEWEST_LEGACY, Era, Revision
from ..server.dispatcher import notify
from ..server.exchange import Exchange
from ..server.failures import report
from ..server.methods import METHODS
from ..server.ports import Peer
from ..server.progress import Progress
from ..store.requests.inbox import Inbox
from ..store.sessions.finding import digest
from ..store.sessions.session_rows import SessionStore
from . import cors, gate, replies
from .calls import Door
from .http import Endpoint, Reply, Request
from .limiting import caller_of, count_call, count_writing
from .listening import Visitor, listen, replay, resumes
from .posted import Item, Posted
from .replies import Forbidden, Refused, refuse

logger = logging.getLogger("django_mcp.request")

#: As much of a body is read for its id, where nobody vouches for whoever sends it.
_REFUSED_BODY_BYTES = 4096


async def respond(request: Request, endpoint: Endpoint, door: Door) -> Reply:
    """Answer any HTTP request to an endpoint. Never raises."""
    try:
        gate.check_source(request)
        if request.method == "OPTIONS":
            return cors.preflight(request)
        reply = await _authenticated(request, endpoint, door)
    except Exception as failure:
        reply = _failed(failure, None, request)
    if request.method == "HEAD":
        reply = replace(reply, body=b"")
    return cors.share(request, reply)


async def _authenticated(request: Request, endpoint: Endpoint, door: Door) -> Reply:
    try:
        principal = await gate.authenticate(request, endpoint, door.runner)
    except (Forbidden, TryLater) as refused:
        # Either may be asked again: the one with other credentials, the other after a while. A
        # client that waits for the answer finds it by the id.
        return _failed(refused, await _id_in_little(request), request)
    door.admit(caller_of(request, principal))
    visit = _Visit(request, endpoint, principal, door)
    if request.method == "POST":
        return await _post(request, visit)
    if request.method == "GET":
        return await visit.listen()
    if request.method == "DELETE":
        return await visit.end_session()
    raise refuse(405, f"{request.method} is not supported here", Allow=cors.METHODS)


async def _id_in_little(request: Request) -> RequestId | None:
    """Return the id of a request that is not to be answered, if little has to be read for it."""
    if request.method != "POST":
        return None
    try:
        return _id_of(messages.parse(await gate.read_body(request, None, _REFUSED_BODY_BYTES)))
    except Refused:
        return None


async def _post(request: Request, visit: _Visit) -> Reply:
    gate.check_form(request)
    message = await gate.read_message(request, visit.principal, visit.door.runner)
    try:
        reply = await visit.answer(message)
    except Exception as failure:
        # From here on the id is known, and every error carries it.
        reply = _failed(failure, _id_of(message), request)
    if reply.body and not headers.acceptable(request.headers.get("Accept")).json:
        return replies.as_events(reply)
    return reply


class _Visit:
    """One HTTP request of an authenticated caller."""

    def __init__(
        self, request: Request, endpoint: Endpoint, principal: Principal, door: Door
    ) -> None:
        self.request = request
        self.endpoint = endpoint
        self.principal = principal
        self.door = door
        self.sessions = SessionStore(endpoint.server.name)

    async def listen(self) -> Reply:
        """Answer GET: the session's own stream, or the rest of one that broke off."""
        version = self.request.headers.get(headers.PROTOCOL_VERSION)
        # 2025-11-25, basic/transports, "Listening for Messages from the Server": 405 where there is
        # no stream. 2026-07-28, basic/transports/streamable-http: no GET any more.
        shows = self.door.streams or resumes(self.request)
        if not shows or lifecycle.is_modern_name(version):
            raise refuse(
                405,
                "This is an endpoint for MCP clients, which POST to it; there is no stream to GET",
                Allow=cors.METHODS,
            )
        lifecycle.check_legacy_version(version)
        gate.check_takes_events(self.request)
        session = await self._enter()
        visitor = Visitor(self.principal, session, self.endpoint.server)
        show = listen if self.door.streams else replay
        return await show(self.request, visitor, self.door.runner)

    async def end_session(self) -> Reply:
        """Answer DELETE."""
        lifecycle.check_legacy_version(self.request.headers.get(headers.PROTOCOL_VERSION))
        key = digest(gate.session_secret(self.request))
        await self.door.runner.blocking(self.sessions.end, key, self.principal)
        return replies.ended()

    async def answer(self, message: Message | Batch | Invalid) -> Reply:
        """Answer what the body holds."""
        if isinstance(message, Invalid):
            raise message.error
        era = lifecycle.era_of(message, self.request.headers.get(headers.PROTOCOL_VERSION))
        if era is Era.MODERN:
            return await self._modern(message)
        if isinstance(message, messages.Request) and message.method == "initialize":
            await self._count_writing(message)
            gate.note_opening()
            return await self._dispatch(message, NEWEST_LEGACY, Sender(), None)
        session = await self._enter()
        if isinstance(message, Batch):
            return await self._batch(message, session)
        if isinstance(message, messages.Request):
            return await self._dispatch(message, session.revision, session.sender, session)
        if isinstance(message, Notification):
            await self._count_writing(message)
        await self._note(message, session)
        return replies.accepted()

    async def _modern(self, message: Message | Batch) -> Reply:
        if isinstance(message, Notification):
            # The era defines no notification to servers over HTTP, so there is nothing to do.
            return replies.accepted()
        if not isinstance(message, messages.Request):
            raise MCPError(ErrorCode.INVALID_REQUEST, "Send one request or notification")
        revision, sender = lifecycle.read_modern(message, self.request.headers)
        if message.method in METHODS and METHODS[message.method].streams:
            gate.check_takes_events(self.request)
        await self._count_writing(message)
        return await self._dispatch(message, revision, sender, None)

    async def _note(self, message: Notification | Response, session: SessionInfo) -> None:
        if isinstance(message, Notification):
            await notify(message, session, self.endpoint.server.name, self.door.runner)
        else:
            await self.door.runner.blocking(
                Inbox(self.endpoint.server.name).answer, session, message
            )

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
        asked = [self._item(item, session) for item in batch.items if _is_asked(item)]
        items = [await self._counted(item) for item in asked]
        for item in batch.items:
            if isinstance(item, Response) or (
                isinstance(item, Notification) and await self._may_write(item)
            ):
                await self._note(item, session)
        if not items:
            return replies.accepted()
        return await self._answer(items, session.revision, session, is_batch=True)

    def _item(self, item: Message | Invalid, session: SessionInfo) -> Item:
        if isinstance(item, Invalid):
            assert item.id is not None
            return Item(messages.Request(item.id, ""), refused=item.error)
        assert isinstance(item, messages.Request)
        if item.method == "initialize":
            # 2025-03-26, basic/lifecycle, "Initialization": never part of a batch.
            refusal = MCPError(ErrorCode.INVALID_REQUEST, "initialize must not be part of a batch")
            return Item(item, refused=refusal)
        exchange = self._exchange(item, session.revision, session.sender, session)
        return Item(item, exchange)

    async def _counted(self, item: Item) -> Item:
        """Return an item of a batch as it is, or refused: the others are answered all the same."""
        try:
            await self._count(item.message)
        except TooManyRequests as error:
            logger.warning("tools/call refused within a batch: %s", error)
            return replace(item, refused=error, exchange=None)
        return item

    async def _may_write(self, item: Notification) -> bool:
        """Return whether a notification of a batch is to be taken: nobody is told if it is not."""
        try:
            await self._count_writing(item)
        except TooManyRequests as error:
            logger.warning("%s dropped within a batch: %s", item.method, error)
            return False
        return True

    async def _count_writing(self, message: messages.Request | Notification) -> None:
        await count_writing(message, self.request, self.principal, self.door.runner)

    async def _count(self, message: messages.Request) -> None:
        await count_call(
            message, self.request, self.endpoint.server, self.principal, self.door.runner
        )

    async def _dispatch(
        self,
        message: messages.Request,
        revision: Revision,
        sender: Sender,
        session: SessionInfo | None,
    ) -> Reply:
        await self._count(message)
        exchange = self._exchange(message, revision, sender, session)
        return await self._answer([Item(message, exchange)], revision, session)

    async def _answer(
        self,
        items: Sequence[Item],
        revision: Revision,
        session: SessionInfo | None,
        *,
        is_batch: bool = False,
    ) -> Reply:
        posted = Posted(
            request=self.request,
            server=self.endpoint.server.name,
            principal=self.principal,
            revision=revision,
            session=session,
            items=tuple(items),
            takes_stream=headers.acceptable(self.request.headers.get("Accept")).events,
            is_batch=is_batch,
        )
        return await self.door.answer(posted)

    async def _enter(self) -> SessionInfo:
        return await gate.enter_session(
            self.request, self.endpoint, self.principal, self.door.runner
        )

    def _exchange(
        self,
        message: messages.Request,
        revision: Revision,
        sender: Sender,
        session: SessionInfo | None,
    ) -> Callable[[Peer], Exchange]:
        settings, is_public = get_settings(), gate.is_public(self.endpoint)
        token = message.meta.get("progressToken")
        return lambda peer: Exchange(
            server=self.endpoint.server,
            request=message,
            revision=revision,
            sender=sender,
            principal=self.principal,
            session=session,
            headers=self.request.headers,
            settings=settings,
            is_public=is_public,
            peer=peer,
            progress=Progress(token, peer.tell),
            http_request=self.request.django,
        )


def _failed(failure: Exception, request_id: RequestId | None, request: Request) -> Reply:
    if isinstance(failure, Refused):
        error, status, extra = failure.error, failure.status, failure.headers
    elif isinstance(failure, MCPError):
        error, status, extra = failure, replies.gate_status(failure), {}
    else:
        event = f"{request.method} failed"
        reference = report(failure, event, request.django, logger)
        error = Failed(f"{INTERNAL} {reference}")
        return replies.error(request_id, error, 500 if request_id is None else 200)
    level = logging.INFO if _is_ordinary(status, request) else logging.WARNING
    logger.log(level, "%s refused with %d: %s", request.method, status, error.message)
    return replies.error(request_id, error, status, **extra)


def _is_ordinary(status: int, request: Request) -> bool:
    """Return whether a refusal is in the course of things.

    Clients ask for credentials, for a stream, after a session; and some, before they have one, what
    a GET gives.
    """
    looks = request.method == "GET" and request.headers.get(headers.SESSION_ID) is None
    return status in (401, 404, 405) or (looks and status in (400, 406))


def _is_asked(item: Message | Invalid) -> bool:
    return isinstance(item, (messages.Request, Invalid))


def _id_of(message: Message | Batch | Invalid) -> RequestId | None:
    return message.id if isinstance(message, (messages.Request, Invalid)) else None
