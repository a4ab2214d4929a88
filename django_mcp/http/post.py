"""A POST, from its body to its reply: the way of every message that a client sends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import copy_context
from functools import partial

from ..protocol import headers, lifecycle, messages
from ..protocol.errors import ErrorCode, InsufficientScope, MCPError, TooManyRequests
from ..protocol.lifecycle import Sender, SessionInfo
from ..protocol.messages import Batch, Invalid, Message, Notification, RequestId, Response
from ..protocol.versions import NEWEST_LEGACY, Era, Revision
from ..running.running_call import RunningCall
from ..server.dispatch import begin, handle_notification
from ..server.exchange import Exchange
from ..server.function_call import FunctionCall
from ..server.methods import METHODS
from ..server.scopes import check_answer, check_scopes
from ..store import inbox
from . import admission, rate_limits, replies
from .incoming_post import IncomingPost
from .inline_post import InlinePost
from .replies import Reply
from .request import Caller
from .streamed_post import StreamedPost

logger = logging.getLogger("django_mcp.request")


async def handle_post(caller: Caller) -> Reply:
    """Answer a POST: read it, find its session, count it, run what it asks for, and reply."""
    admission.check_form(caller.request)
    message = await admission.read_message(caller)
    try:
        reply = await _answer(message, caller)
    except Exception as failure:
        # From here on the id is known, and every error carries it.
        reply = replies.failed(failure, id_of(message), caller.request)
    if reply.body and not headers.acceptable(caller.request.accept).json:
        return replies.as_events(reply)
    return reply


async def _answer(message: Message | Batch | Invalid, caller: Caller) -> Reply:
    """Answer what the body holds."""
    if isinstance(message, Invalid):
        raise message.error
    session: SessionInfo | None = None
    if lifecycle.era_of(message, caller.request.protocol_version) is Era.MODERN:
        if isinstance(message, Notification):
            # The era defines no notification to servers over HTTP, so there is nothing to do.
            return replies.accepted()
        if not isinstance(message, messages.Request):
            raise MCPError(ErrorCode.INVALID_REQUEST, "Send one request or notification")
        revision, sender = lifecycle.read_modern(message, caller.request)
        method = METHODS.get(message.method)
        if method is not None and method.stays_open:
            admission.check_takes_events(caller.request)
    elif isinstance(message, messages.Request) and message.method == "initialize":
        revision, sender = NEWEST_LEGACY, Sender()
        admission.note_opening(caller)
    else:
        session = await admission.enter_session(caller)
        revision, sender = session.revision, session.sender
    if isinstance(message, Batch):
        assert session is not None
        return await _answer_batch(message, session, caller)
    if not isinstance(message, messages.Request):
        assert session is not None
        return await _accept(message, session, caller)
    await rate_limits.count(message, caller)
    exchange = Exchange(message, revision, sender, session, caller)
    call = RunningCall(message, caller.server, exchange)
    return await _run((call,), revision, session, caller)


async def _accept(message: Notification | Response, session: SessionInfo, caller: Caller) -> Reply:
    """Accept a notification or a response: 202."""
    check: Callable[[str, str], None] | None = None
    if caller.checks_scopes:
        check_scopes(caller.server, caller)
        check = partial(check_answer, caller.server, caller)
    if isinstance(message, Notification):
        await rate_limits.count(message, caller)
        await handle_notification(message, session, caller.server_name, caller.runner)
    else:
        await caller.runner.run_blocking(inbox.take_answer, session, message, check)
    return replies.accepted()


async def _answer_batch(batch: Batch, session: SessionInfo, caller: Caller) -> Reply:
    """Answer an array of messages: one by one, so that what is refused refuses no other."""
    if not session.revision.batches:
        raise MCPError(
            ErrorCode.INVALID_REQUEST,
            f"Revision {session.revision.name} has no batches; send one message per POST",
        )
    for item in batch.items:
        # An error without an id has no place in a 200, so the batch is refused as a whole, before
        # anything in it has run.
        if isinstance(item, Invalid) and item.id is None:
            raise item.error
    calls = [
        await _call_of(item, session, caller)
        for item in batch.items
        if isinstance(item, (messages.Request, Invalid))
    ]
    for item in batch.items:
        if isinstance(item, (Notification, Response)):
            try:
                await _accept(item, session, caller)
            except (InsufficientScope, TooManyRequests) as error:
                logger.warning("A message is dropped within a batch: %s", error)
    return await _run(tuple(calls), session.revision, session, caller, is_batch=True)


async def _run(
    calls: tuple[RunningCall, ...],
    revision: Revision,
    session: SessionInfo | None,
    caller: Caller,
    *,
    is_batch: bool = False,
) -> Reply:
    """Run calls where each belongs, and reply with what comes of them."""
    runner = caller.runner
    here: list[RunningCall] = []
    apart: list[RunningCall] = []
    for call in calls:
        if call.exchange is None:
            continue
        beginning = begin(caller.server, call.exchange, runner)
        if is_batch:
            call.context = context = copy_context()
            begun = await runner.run_within(context, beginning)
        else:
            begun = await beginning
        if isinstance(begun, InsufficientScope):
            await _note_insufficient(begun, caller)
        call.begun = begun
        if isinstance(begun, FunctionCall):
            (apart if runner.is_run_apart(begun) else here).append(call)
    post = (revision, session, caller, is_batch)
    if not apart:
        # Where nothing of the site's is to run, nothing has to be looked after.
        return await (InlinePost if here else IncomingPost)(calls, *post).run(runner)
    if here:
        await InlinePost(here, *post).run_calls(runner)
    sends_messages = any(METHODS[call.method].sends_messages for call in apart)
    post_class = StreamedPost if sends_messages else IncomingPost
    return await runner.run_on_loop(post_class(calls, *post).run)


async def _note_insufficient(error: InsufficientScope, caller: Caller) -> None:
    """Let whoever has let the caller in know that he needs more scopes."""
    note = caller.principal.on_insufficient_scope
    if note is not None and error.status == 403:
        await caller.runner.run_blocking(note, caller.principal)


async def _call_of(
    item: messages.Request | Invalid, session: SessionInfo, caller: Caller
) -> RunningCall:
    """Return a request of a batch as a call; or an error in the place of one."""
    if isinstance(item, Invalid):
        assert item.id is not None
        return RunningCall(messages.Request(item.id, ""), caller.server, None, item.error)
    if item.method == "initialize":
        # 2025-03-26, basic/lifecycle, "Initialization": never part of a batch.
        refusal = MCPError(ErrorCode.INVALID_REQUEST, "initialize must not be part of a batch")
        return RunningCall(item, caller.server, None, refusal)
    try:
        await rate_limits.count(item, caller)
    except TooManyRequests as error:
        logger.warning("%s refused within a batch: %s", item.method, error)
        return RunningCall(item, caller.server, None, error)
    exchange = Exchange(item, session.revision, session.sender, session, caller)
    return RunningCall(item, caller.server, exchange)


def id_of(message: Message | Batch | Invalid) -> RequestId | None:
    """Return the id of a request, or of what was meant as one."""
    return message.id if isinstance(message, (messages.Request, Invalid)) else None
