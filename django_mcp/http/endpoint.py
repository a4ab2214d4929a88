"""One HTTP request to an endpoint, from the view or the mount to its reply.

Written once for both: everything that waits is behind the runner and ``request.read``. Where there
is no event loop these never suspend, and the whole runs inline.
"""

from __future__ import annotations

from ..conf import get_settings
from ..protocol import lifecycle, messages
from ..protocol.errors import TryLater
from ..protocol.messages import RequestId
from ..server.function_call import Runner
from ..server.scopes import check_scopes
from ..store.sessions.finding import digest
from ..store.sessions.session_rows import end_session
from . import admission, cors, replies
from .get_stream import handle_get
from .partition_of_request import NOT_HERE, enter_partition_of
from .post import handle_post, id_of
from .rate_limits import address_key
from .replies import Forbidden, Refused, Reply, refusal
from .request import Caller, Endpoint, IncomingRequest

#: As much of a body is read for its id, where nobody vouches for whoever sends it.
_REFUSED_BODY_BYTES = 4096


async def respond(request: IncomingRequest, endpoint: Endpoint, runner: Runner) -> Reply:
    """Answer any HTTP request to an endpoint. Never raises."""
    inside = None
    try:
        admission.check_source(request)
        if request.method == "OPTIONS":
            return cors.preflight(request)
        settings = get_settings()
        if settings.partition is not None:
            inside = await enter_partition_of(request, runner)
            if inside is None:
                return NOT_HERE
        try:
            caller = await admission.authenticate(request, endpoint, settings, runner)
        except (Forbidden, TryLater) as refused:
            # Either may be asked again: the one with other credentials, the other after a while. A
            # client that waits for the answer finds it by the id.
            reply = replies.failed(refused, await _id_in_little(request), request)
        else:
            reply = await (handle_post(caller) if request.method == "POST" else _handle(caller))
    except Exception as failure:
        reply = replies.failed(failure, None, request)
    finally:
        if inside is not None:
            inside.__exit__(None, None, None)
    if request.method == "HEAD":
        reply = Reply(reply.status, b"", reply.headers, reply.events)
    return reply if request.origin is None else cors.share(request, reply)


async def _handle(caller: Caller) -> Reply:
    method = caller.request.method
    if caller.checks_scopes:
        check_scopes(caller.server, caller)
    if method == "GET":
        return await handle_get(caller)
    if method == "DELETE":
        return await _end_session(caller)
    raise refusal(405, f"{method} is not supported here", Allow=cors.METHODS)


async def _end_session(caller: Caller) -> Reply:
    lifecycle.check_legacy_version(caller.request.protocol_version)
    key = digest(admission.session_secret(caller.request))
    await caller.runner.run_blocking(end_session, caller.server_name, key, caller.principal)
    return replies.ended()


async def _id_in_little(request: IncomingRequest) -> RequestId | None:
    """Return the id of a request that is not to be answered, if little has to be read for it."""
    if request.method != "POST":
        return None
    try:
        nobody = address_key(request.address)
        return id_of(
            messages.parse(await admission.read_body(request, nobody, _REFUSED_BODY_BYTES))
        )
    except Refused:
        return None
