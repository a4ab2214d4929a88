"""The view: a plain synchronous one, for WSGI and ASGI alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib.auth.decorators import login_not_required
from django.core.handlers.wsgi import WSGIRequest
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.request import HttpHeaders, UnreadablePostError
from django.http.response import HttpResponseBase
from django.utils.decorators import classonlymethod
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from ..conf import get_site_settings
from ..partitions import partitions
from ..protocol.errors import ErrorCode
from ..running.shutdown import is_closing
from ..running.user_code import (
    ASGIRunner,
    InlineRunner,
    WSGIRunner,
    run_inline,
    runner_of_view,
)
from ..server.default_server import mcp
from ..server.exchange import WantedTools
from ..server.file_links import FILE
from . import no_urls, replies
from .endpoint import respond
from .event_stream import ON_LOOP, ON_THREAD
from .file_view import serve_file
from .partition_of_request import NOT_HERE, enter_partition_of
from .replies import Reply, refusal
from .report_filter import extend_report_filter, report_filter
from .request import (
    SESSION_ID_VARIABLE,
    WANTED_TOOLS,
    BodyTooLarge,
    Endpoint,
    allowed_hosts,
    is_host_among,
)
from .thread_events import ThreadEvents

if TYPE_CHECKING:
    from ..server.registry import MCPServer


def outside_the_site(view: Callable[..., Any]) -> Callable[..., Any]:
    """Exempt a view from what a site asks of the requests for its pages."""
    view = csrf_exempt(login_not_required(view))
    for alias in connections:
        view = transaction.non_atomic_requests(using=alias)(view)
    return view


class MCPView(View):
    """Serve an MCP server: ``path("mcp", MCPView.as_view())``.

    ``server`` defaults to the default server, ``auth`` to the server's own and then to
    ``DJANGO_MCP["AUTH"]``. The view is exempt from CSRF checks (cookies alone open nothing to other
    origins, which are refused), from ``LoginRequiredMiddleware`` (``auth`` decides) and from
    ``ATOMIC_REQUESTS`` (which applies to each tool instead).
    """

    server: MCPServer = mcp
    auth: str | Callable[..., Any] | None = None

    @classonlymethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., HttpResponseBase]:
        """Return the view, marked so that the mount recognises it undecorated."""
        view: Any = outside_the_site(super().as_view(**initkwargs))
        if cls is not MCPView:
            return view  # type: ignore[no-any-return]
        endpoint = Endpoint(initkwargs.get("server", cls.server), initkwargs.get("auth", cls.auth))

        @wraps(view)
        def mcp_view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            # No method of the class is called, since no subclass can have changed any.
            if FILE in kwargs:
                return _file(request, endpoint, kwargs[FILE])
            return _answer(request, endpoint, runner_of_view(request), kwargs.get(WANTED_TOOLS, ""))

        mcp_view.mcp_endpoint = (mcp_view, endpoint)  # type: ignore[attr-defined]
        return mcp_view

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer any method: the endpoint knows which ones it serves."""
        endpoint = Endpoint(self.server, self.auth)
        if FILE in kwargs:
            return _file(request, endpoint, kwargs[FILE])
        return _answer(request, endpoint, self.runner(request), kwargs.get(WANTED_TOOLS, ""))

    def runner(self, request: HttpRequest) -> InlineRunner:
        """Return what runs the calls of a request. The test client overrides it."""
        return runner_of_view(request)


def endpoint_of(view: Any) -> Endpoint | None:
    """Return what stands behind a view, if it is one of an endpoint, perhaps a decorated one."""
    kind: Any = getattr(view, "view_class", None)
    if kind is None or not issubclass(kind, MCPView):
        return None
    given = view.view_initkwargs
    return Endpoint(given.get("server", kind.server), given.get("auth", kind.auth))


def _file(request: HttpRequest, endpoint: Endpoint, behind: str) -> HttpResponseBase:
    with ExitStack() as inside:
        if partitions() is not None:
            entered = run_inline(enter_partition_of(ViewRequest(request), InlineRunner()))
            if entered is None:
                return _response(NOT_HERE, request)
            inside.enter_context(entered)
        return as_it_stands(serve_file(request, endpoint.server, behind), request)


def _answer(
    request: HttpRequest, endpoint: Endpoint, runner: InlineRunner, wanted_tools: str
) -> HttpResponseBase:
    try:
        reply = run_inline(respond(ViewRequest(request, wanted_tools), endpoint, runner))
    except BaseException:
        # Whatever interrupts the thread while it waits, it waits for no stream any more.
        runner.release()
        raise
    if isinstance(runner, WSGIRunner):
        return _response_on_thread(reply, request, runner)
    response = _response(reply, request)
    if isinstance(runner, ASGIRunner):
        # Django's thread for the request ends with it, or with its stream: what it has opened would
        # stay open, unused or for as long as its client likes.
        connections.close_all()
        if is_closing() and _can_be_last(request):
            response.headers["Connection"] = "close"
    return response


def _can_be_last(request: Any) -> bool:
    """Return whether this can be the last response on its connection; HTTP/2 has no such header."""
    return bool(request.scope["http_version"].startswith("1"))


def _response_on_thread(reply: Reply, request: HttpRequest, runner: WSGIRunner) -> HttpResponseBase:
    """Return a response under WSGI, where the server's thread sends a stream."""
    if reply.events is None:
        runner.release()
        return _response(reply, request)
    connections.close_all()  # none is held while a stream idles
    events = ThreadEvents(reply.events, runner.release)
    return _stream_response(reply, events)


def _response(reply: Reply, request: HttpRequest) -> HttpResponseBase:
    if reply.events is not None:
        return _stream_response(reply, reply.events)
    response = HttpResponse(reply.body, status=reply.status, content_type=replies.JSON_TYPE)
    for name, value in reply.headers.items():
        if value is not replies.JSON_TYPE:
            response.headers[name] = value
    if not reply.body:
        del response.headers["Content-Type"]
    return as_it_stands(response, request) if 400 <= reply.status < 500 else response


def _stream_response(reply: Reply, events: Any) -> StreamingHttpResponse:
    # Typed as for WSGI; under ASGI an asynchronous iterator is what it takes.
    return StreamingHttpResponse(events, status=reply.status, headers=dict(reply.headers))


R = TypeVar("R", bound=HttpResponseBase)


def as_it_stands(response: R, request: HttpRequest) -> R:
    """Return a response that is sent as it stands, and is not worth a line in Django's log.

    The endpoint has logged what is worth it; and Django logs no response twice.
    """
    response._has_been_logged = True  # type: ignore[attr-defined]
    if response.status_code == 404:
        # LocaleMiddleware and CommonMiddleware look for a page to redirect to. Where a site has one
        # for everything, they would take a lost session for a missing language.
        request.urlconf = no_urls.__name__
    return response


class _Environment:
    """The headers of a Django request, without the mapping that ``request.headers`` would build."""

    __slots__ = ("_meta", "_session_id")

    def __init__(self, meta: Mapping[str, Any], session_id: str | None) -> None:
        self._meta = meta
        self._session_id = session_id

    def get(self, name: str, /) -> str | None:
        """Return the value of the header ``name``."""
        variable = _variable(name)
        return self._session_id if variable == SESSION_ID_VARIABLE else self._meta.get(variable)


@lru_cache(maxsize=1024)
def _variable(name: str) -> str:
    name = name.upper().replace("-", "_")
    return name if name in HttpHeaders.UNPREFIXED_HEADERS else HttpHeaders.HTTP_PREFIX + name


class ViewRequest:
    """A Django request as the endpoint sees it.

    The ``Mcp-Session-Id`` is taken out of the request, which reports of errors show to people and
    services; what they hide by their own lists does not include it.
    """

    def __init__(self, request: Any, wanted_tools: str = "") -> None:
        meta = request.META
        self.pace = ON_THREAD if isinstance(request, WSGIRequest) else ON_LOOP
        if SESSION_ID_VARIABLE in meta:
            # Kept for a view that is given the request once more.
            request._mcp_session_id = meta.pop(SESSION_ID_VARIABLE)
        if "exception_reporter_filter" in request.__dict__:
            extend_report_filter(request)
        else:
            request.exception_reporter_filter = report_filter
        self._request: HttpRequest = request
        self.method: str = request.method or ""
        self.path: str = request.path
        self.session_id: str | None = getattr(request, "_mcp_session_id", None)
        self.address = str(meta.get("REMOTE_ADDR") or "")
        self.content_length: str | None = meta.get("CONTENT_LENGTH")
        self.accept: str | None = meta.get("HTTP_ACCEPT")
        self.content_type: str | None = meta.get("CONTENT_TYPE")
        self.origin: str | None = meta.get("HTTP_ORIGIN")
        self.protocol_version: str | None = meta.get("HTTP_MCP_PROTOCOL_VERSION")
        self.mcp_method: str | None = meta.get("HTTP_MCP_METHOD")
        self.mcp_name: str | None = meta.get("HTTP_MCP_NAME")
        self.wanted_tools: WantedTools = (
            wanted_tools,
            meta.get("HTTP_X_MCP_TOOLSETS"),
            meta.get("HTTP_X_MCP_TOOLS"),
            meta.get("HTTP_X_MCP_READONLY"),
        )

    @property
    def secure(self) -> bool:
        """Whether the request came over HTTPS, as Django says."""
        return self._request.is_secure()

    @property
    def headers(self) -> _Environment:
        """All headers, also the ``Mcp-Session-Id``, which nobody else sees."""
        return _Environment(self._request.META, self.session_id)

    def host(self) -> str:
        """Return what Django makes of Host, and of X-Forwarded-Host where it is trusted."""
        host: str = self._request.META.get("HTTP_HOST", "")
        if not get_site_settings().use_x_forwarded_host and is_host_among(host, allowed_hosts()):
            return host  # as Django would
        return self._request.get_host()

    async def read(self, limit: int, caller: str) -> bytes:
        """Read from the stream: ``request.body`` has a limit of its own, and an HTML answer."""
        if "HTTP_TRANSFER_ENCODING" in self._request.META and self._is_endless():
            raise refusal(411, "Send a Content-Length; this server reads no chunked bodies")
        try:
            body: bytes = self._request.read(limit + 1)
        except UnreadablePostError as error:
            raise refusal(400, "The body ended early", code=ErrorCode.PARSE_ERROR) from error
        if len(body) > limit:
            raise BodyTooLarge
        # For user code that looks at request.body, which cannot read the stream again.
        self._request._body = body
        return body

    def keeping(self, body: bytes, caller: str) -> AbstractAsyncContextManager[None]:
        """Count nothing: here a thread waits for each body."""
        return nullcontext()

    def _is_endless(self) -> bool:
        # Django takes a WSGI body without a length for an empty one.
        meta = self._request.META
        chunked = bool(meta.get("HTTP_TRANSFER_ENCODING")) and not meta.get("CONTENT_LENGTH")
        return chunked and isinstance(self._request, WSGIRequest)

    async def disconnected(self) -> None:
        """Wait for ever: Django cancels the request instead."""
        await asyncio.Event().wait()

    def django(self) -> HttpRequest:
        """Return the request itself."""
        return self._request
