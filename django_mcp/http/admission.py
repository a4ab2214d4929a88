"""The checks that every request passes before its method is looked up, in this order.

Host and origin, authentication, HTTP method and headers, size; then, once the body is read, the
version and the session. Each check raises :class:`Refused`, or an error of the protocol.
"""

from __future__ import annotations

import logging
import re
from functools import partial
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import DisallowedHost, ImproperlyConfigured
from django.db import InterfaceError, OperationalError
from django.views.decorators.debug import sensitive_variables

from ..auth import Principal, ProtectedResource, Refusal, public
from ..conf import Settings, get_settings, get_site_settings
from ..current_partition import current_partition
from ..protocol import headers, lifecycle, messages
from ..protocol.errors import ErrorCode, MCPError
from ..protocol.lifecycle import SessionInfo
from ..protocol.messages import Batch, Invalid, Message
from ..protocol.values import MANY_VALUES, exceeds, most_values
from ..server.function_call import Runner
from ..server.registry import MCPServer
from ..server.tool_selection import toolset_in
from ..store.database import unavailable
from ..store.ledger import ledger
from ..store.sessions.finding import digest, find_sessions
from ..store.sessions.session_rows import check_owner, recall_session, touch_session
from . import protected_resource, rate_limits
from .protected_resource import imported
from .replies import Forbidden, Refused, refusal
from .request import BodyTooLarge, Caller, Endpoint, IncomingRequest, allowed_hosts, is_host_among

logger = logging.getLogger("django_mcp.request")


def check_source(request: IncomingRequest) -> None:
    """Check Host and Origin, against DNS rebinding.

    2025-11-25, basic/transports, "Security Warning"; 2026-07-28, "Security & Endpoint": an Origin
    that is present and invalid is 403.
    """
    try:
        host = request.host()
    except DisallowedHost:
        raise refusal(
            400, "Invalid Host header; add the name to ALLOWED_HOSTS if it is yours"
        ) from None
    if get_site_settings().secure_ssl_redirect and not (request.secure or _exempt(request.path)):
        # SecurityMiddleware would redirect, which turns a POST into a GET.
        raise refusal(403, "Use HTTPS")
    origin = request.origin
    if origin is not None and not (cross_origin(origin) or _same_origin(origin, host, request)):
        raise refusal(403, 'Origin not allowed; see DJANGO_MCP["ALLOWED_ORIGINS"]')


def cross_origin(origin: str) -> bool:
    """Return whether another site's pages at ``origin`` may use the endpoint."""
    try:
        allowed = get_settings().allowed_origins
    except ImproperlyConfigured:
        return False
    return "*" in allowed or origin.lower() in (each.lower() for each in allowed)


async def authenticate(
    request: IncomingRequest, endpoint: Endpoint, settings: Settings, runner: Runner
) -> Caller:
    """Ask ``AUTH`` who the caller is."""
    server = endpoint.server
    name = server.name
    if request.wanted_tools[0]:
        _check_toolset(toolset_in(request.wanted_tools[0]), server)
    auth = endpoint.auth or server.auth or settings.auth
    if auth is None:
        logger.error('Refused: DJANGO_MCP["AUTH"] is not set; see the system check django_mcp.E001')
        raise refusal(403, 'This endpoint is closed: DJANGO_MCP["AUTH"] is not set')
    if isinstance(auth, str):
        auth = imported(auth)
    django_request: Any = request.django()
    django_request.mcp_server = name
    resource: ProtectedResource | None = None
    if server.authorization_servers or settings.authorization_servers:
        django_request.mcp_resource = resource = _resource(request, endpoint, settings)
    if (call_context := settings.call_context) is not None:
        make = imported(call_context) if isinstance(call_context, str) else call_context
        runner.call_context = partial(make, django_request)
    try:
        principal = await runner.run(auth, django_request)
    except (OperationalError, InterfaceError) as error:
        raise unavailable(error) from error
    if not isinstance(principal, Principal):
        principal = _principal(principal, request, name, resource)
    django_request.user = principal.user
    runner.limit_key = key = principal.limit_key or rate_limits.address_key(
        request.address, current_partition()
    )
    checks_scopes = (
        server.is_scoped
        or principal.read_only
        or settings.base_scopes != ()
        or settings.read_only_scopes != ()
    )
    is_public = auth is public
    return Caller(
        request,
        server,
        name,
        principal,
        key,
        is_public,
        settings,
        runner,
        resource,
        checks_scopes,
    )


def check_form(request: IncomingRequest) -> None:
    """Check the headers that say in which form body and answer are."""
    if not headers.is_json(request.content_type):
        raise refusal(415, "Send the message as Content-Type: application/json")
    acceptable = headers.acceptable(request.accept)
    if not (acceptable.json or acceptable.events):
        raise refusal(406, "Accept application/json and text/event-stream")


def check_takes_events(request: IncomingRequest) -> None:
    """Check that the client takes a stream, which is all that GET has to offer."""
    if not headers.acceptable(request.accept).events:
        raise refusal(406, "Accept text/event-stream")


async def read_message(caller: Caller) -> Message | Batch | Invalid:
    """Read the body and what it says."""
    settings = caller.settings
    body = await read_body(caller.request, caller.limit_key, settings.max_body_bytes)
    values, limit = most_values(body), settings.max_json_values
    if values <= MANY_VALUES and values <= limit and len(body) <= messages.SMALL_BYTES:
        return messages.parse(body, values)
    async with caller.request.keeping(body, caller.limit_key):
        return await caller.runner.run_blocking(_parse_large, body, values, limit)


def _parse_large(body: bytes, values: int, limit: int) -> Message | Batch | Invalid:
    if values > limit and exceeds(body, limit):
        raise refusal(413, f"The body holds more than {limit} JSON values; send fewer at once")
    return messages.parse(body, values)


async def read_body(request: IncomingRequest, caller: str, limit: int) -> bytes:
    """Read the body, within ``limit`` bytes."""
    declared = (request.content_length or "").lstrip("0")
    digits = declared.isascii() and declared.isdigit()
    try:
        if digits and (len(declared) > len(str(limit)) or int(declared) > limit):
            raise BodyTooLarge
        return await request.read(limit, caller)
    except BodyTooLarge:
        raise refusal(413, f"The body exceeds {limit} bytes") from None


@sensitive_variables("secret")
async def enter_session(caller: Caller) -> SessionInfo:
    """Find the session of a legacy message and note that it is in use."""
    version = caller.request.protocol_version
    lifecycle.check_legacy_version(version)
    server = caller.server_name
    secret = session_secret(caller.request)
    session = recall_session(server, secret, caller.principal)
    if session is None:
        found = await caller.runner.find_batched(find_sessions, digest(secret))
        session = check_owner(server, found, caller.principal)
    if caller.is_in_transaction:
        await caller.runner.run_blocking(touch_session, session)
    else:
        ledger().touch(session.id)
    if version is not None and version.strip() != session.revision.name:
        logger.info(
            "%s says %s; the session has %s",
            headers.PROTOCOL_VERSION,
            version,
            session.revision.name,
        )
    return session


def note_opening(caller: Caller) -> None:
    """Note that a session is opened: there may be clients that never do anything else."""
    if not caller.is_in_transaction:
        ledger().note_activity()


def session_secret(request: IncomingRequest) -> str:
    """Return the ``Mcp-Session-Id``.

    2025-11-25, basic/transports, "Session Management": a request without it is 400.
    """
    if request.session_id is None:
        raise refusal(400, f"{headers.SESSION_ID} is missing; send initialize first")
    return request.session_id


def _exempt(path: str) -> bool:
    patterns = django_settings.SECURE_REDIRECT_EXEMPT
    return any(re.search(pattern, path.lstrip("/")) for pattern in patterns)


def _same_origin(origin: str, host: str, request: IncomingRequest) -> bool:
    # ALLOWED_HOSTS = ["*"] trusts every Host, and under DNS rebinding Host and Origin agree. So
    # the star does not count here.
    named = tuple(each for each in allowed_hosts() if each != "*")
    if not is_host_among(host, named):
        return False
    scheme, port = ("https", "443") if request.secure else ("http", "80")
    own = f"{scheme}://{host.removesuffix(f':{port}')}"
    return origin.lower().removesuffix(f":{port}") == own.lower()


def _check_toolset(name: str, server: MCPServer) -> None:
    """Refuse a URL that names a toolset which is not there."""
    if name and name not in server.toolsets:
        raise refusal(404, f"There is no toolset {name!r} here; `manage.py mcp list` shows them")


def _resource(
    request: IncomingRequest, endpoint: Endpoint, settings: Settings
) -> ProtectedResource | None:
    # The tools that a client wants make no other resource of an endpoint.
    path = request.path.rstrip("/").removesuffix(request.wanted_tools[0])
    path = protected_resource.path_below_prefix(path)
    return protected_resource.find_resource(
        endpoint, settings, host=request.host(), is_secure=request.secure, path=path
    )


def _principal(
    verdict: Any, request: IncomingRequest, server: str, resource: ProtectedResource | None
) -> Principal:
    """Return who is calling, where ``AUTH`` has returned something else than a principal."""
    if getattr(verdict, "is_authenticated", False):
        return Principal(verdict)
    if verdict is None or getattr(verdict, "is_anonymous", False):
        verdict = Refusal() if resource is None else Refusal(resource.advice)
    if isinstance(verdict, Refusal):
        raise _refused(verdict, request, server, resource)
    raise ImproperlyConfigured(
        "AUTH must return a django_mcp.auth.Principal, a user or a django_mcp.auth.Refusal, not "
        f"{type(verdict).__name__}."
    )


def _refused(
    answer: Refusal, request: IncomingRequest, server: str, resource: ProtectedResource | None
) -> Refused:
    # RFC 9110, section 15.5.2: a 401 carries a challenge.
    error = MCPError(ErrorCode.INVALID_REQUEST, answer.message)
    refused = (Forbidden if answer.status == 403 else Refused)(answer.status, error)
    own = _challenge(answer.status, request, server, resource)
    challenges = [each or own for each in (answer.challenge, *answer.more_challenges)]
    given = {"WWW-Authenticate": ", ".join(challenges), **answer.headers}
    refused.headers = {name: _sendable(text) for name, text in given.items()}
    return refused


def _challenge(
    status: int, request: IncomingRequest, server: str, resource: ProtectedResource | None
) -> str:
    if status != 401:
        return headers.bearer_challenge(realm=server)
    # RFC 6750, section 3.1: no error for whoever has shown no token.
    error = {"error": "invalid_token"} if headers.bearer_token(request.headers) else {}
    where = {} if resource is None else resource.challenge
    return headers.bearer_challenge(realm=server, **where, **error)


def _sendable(text: str) -> str:
    # What AUTH puts into a header may come from the client; it must not end the header.
    return "".join(each if " " <= each <= "~" else "?" for each in text)
