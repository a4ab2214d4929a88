"""``MCPClient``, which calls the view of an endpoint without HTTP in between."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)

from ..auth import Principal
from ..http.views import MCPView
from ..protocol import headers
from ..protocol.versions import BY_NAME, NEWEST_LEGACY
from ..running.user_code import InlineRunner
from ..server.default_server import mcp
from ..server.registry import MCPServer
from ..store.access import rate_counters
from .answer import Answer, MCPFailure
from .scripted_user import CAPABILITIES, Answers, Asked, ScriptedRunner, ScriptedUser

CLIENT_INFO = {"name": "django_mcp.testing", "version": "1"}


class MCPClient:
    """A client of one server, in process.

    ::

        client = MCPClient().as_user(user)
        client.tool("find_orders", status="open").assert_ok().assert_contains("Order 7")
        MCPClient(answers=[True]).tool("refund", order_id=7).assert_ok()

    ``revision`` is the protocol revision to speak. ``auth`` is the endpoint's authentication; by
    default whoever :meth:`as_user` names is let in, and anonymous callers too.

    ``log_level`` asks for log messages of that level and above. They are in :attr:`Answer.said`,
    as is progress, which is always asked for.

    ``answers`` are what the user, the client's model and the client itself answer to questions of
    the server: a list of them in order, a dict by the beginning of each question's message, or a
    function of the question (:class:`Asked`). The client then declares that it can be asked
    everything, unless ``capabilities`` say otherwise.
    """

    def __init__(
        self,
        server: MCPServer = mcp,
        *,
        revision: str = NEWEST_LEGACY.name,
        auth: str | Callable[..., Any] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        answers: Answers | None = None,
        log_level: str | None = None,
    ) -> None:
        self.server = server
        self.log_level = log_level
        self.revision = BY_NAME[revision]
        self._user = None if answers is None else ScriptedUser(answers)
        assumed = {} if self._user is None else CAPABILITIES
        self.capabilities = dict(assumed if capabilities is None else capabilities)
        self.session_id: str | None = None
        self.principal = Principal(AnonymousUser(), scopes=None)
        self.headers: dict[str, str] = {}
        self._auth = auth
        self._ids = itertools.count(1)
        # Rate limits begin anew with each client, and its calls use up nobody else's.
        self._counts = rate_counters.Counts()

    def as_user(
        self,
        user: Any,
        *,
        client_id: str = "",
        scopes: Iterable[str] | None = None,
        read_only: bool = False,
    ) -> MCPClient:
        """Return a client that acts for ``user``, in a session of its own.

        Its credentials have ``scopes``; with ``None`` no scopes limit them. With ``read_only`` they
        are good for reading alone.
        """
        client = MCPClient(
            self.server,
            revision=self.revision.name,
            auth=self._auth,
            capabilities=self.capabilities,
            log_level=self.log_level,
        )
        client._user = self._user
        client._counts = self._counts
        granted = None if scopes is None else frozenset(scopes)
        client.principal = Principal(user, client_id, granted, read_only=read_only)
        client.headers = dict(self.headers)
        return client

    @property
    def asked(self) -> list[Asked]:
        """The questions that ``answers`` have answered so far."""
        return [] if self._user is None else self._user.asked

    def tool(self, tool: str, /, **arguments: Any) -> Answer:
        """Call a tool."""
        return self.request("tools/call", name=tool, arguments=arguments)

    def read(self, uri: str) -> Answer:
        """Read a resource."""
        return self.request("resources/read", uri=uri)

    def prompt(self, prompt: str, /, **arguments: str) -> Answer:
        """Get a prompt."""
        return self.request("prompts/get", name=prompt, arguments=arguments)

    def complete(self, reference: str, argument: str, value: str = "", **chosen: str) -> Answer:
        """Ask for completions; ``reference`` is a prompt's name or a template's URI.

        ``chosen`` are the values of other arguments.
        """
        kind = "ref/resource" if "://" in reference else "ref/prompt"
        key = "uri" if "://" in reference else "name"
        params: dict[str, Any] = {
            "ref": {"type": kind, key: reference},
            "argument": {"name": argument, "value": value},
        }
        if chosen:
            params["context"] = {"arguments": chosen}
        return self.request("completion/complete", **params)

    def list_tools(self) -> list[dict[str, Any]]:
        """List all tools, page by page."""
        return self._list("tools/list", "tools")

    def list_resources(self) -> list[dict[str, Any]]:
        """List all resources, page by page."""
        return self._list("resources/list", "resources")

    def list_resource_templates(self) -> list[dict[str, Any]]:
        """List all resource templates, page by page."""
        return self._list("resources/templates/list", "resourceTemplates")

    def list_prompts(self) -> list[dict[str, Any]]:
        """List all prompts, page by page."""
        return self._list("prompts/list", "prompts")

    def initialize(self) -> Answer:
        """Open a session, as the first legacy request does by itself."""
        answer = self.send(
            {
                "jsonrpc": "2.0",
                "id": next(self._ids),
                "method": "initialize",
                "params": {
                    "protocolVersion": self.revision.name,
                    "capabilities": self.capabilities,
                    "clientInfo": CLIENT_INFO,
                },
            }
        )
        self.session_id = answer.http.headers.get(headers.SESSION_ID)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        if self.log_level is not None:
            self._request("logging/setLevel", {"level": self.log_level})
        return answer

    def close(self) -> Answer:
        """End the session."""
        answer = Answer(self.http("DELETE"))
        self.session_id = None
        return answer

    def request(self, method: str, **params: Any) -> Answer:
        """Send any request, and answer what the server asks before it has a result.

        Raises ``AssertionError`` if the server asks what ``answers`` has no answer to.
        """
        if self.revision.modern:
            params["_meta"] = {**self._meta(), **params.get("_meta", {})}
        elif self.session_id is None:
            opened = self.initialize()
            if opened.error is not None:
                return opened
        answer = self._request(method, params)
        while self._user is not None and _requires_input(answer):
            requests = answer.result["inputRequests"]
            params["inputResponses"] = {
                key: self._user.answer(Asked(each["method"], each.get("params", {}), key))
                for key, each in requests.items()
            }
            params["requestState"] = answer.result["requestState"]
            answer = self._request(method, params)
        if self._user is not None and self._user.unexpected is not None:
            raise self._user.unexpected
        return answer

    def send(self, message: Any, **more_headers: str) -> Answer:
        """POST one message as it stands, with the headers that it needs."""
        given = {**self._mirrored(message), **self.headers, **more_headers}
        return Answer(self.http("POST", json.dumps(message).encode(), **given))

    def http(self, method: str, body: bytes = b"", **more_headers: str) -> HttpResponse:
        """Make an HTTP request to the endpoint; underscores in names of headers are hyphens."""
        given = {
            "Accept": "application/json, text/event-stream",
            **self._session_headers(),
            **more_headers,
        }
        request = RequestFactory().generic(
            method,
            "/mcp",
            body,
            content_type="application/json",
            secure=settings.SECURE_SSL_REDIRECT,
            headers={name.replace("_", "-"): value for name, value in given.items()},
        )
        _check_host(request)
        auth = self._auth or self._authenticate
        view = _View.as_view(server=self.server, auth=auth, user=self._user)
        with rate_counters.counting_in(self._counts):
            response = view(request)
        assert isinstance(response, HttpResponse)
        return response

    def _request(self, method: str, params: dict[str, Any]) -> Answer:
        request_id = next(self._ids)
        if method in headers.NAME_SOURCES:
            meta = {"progressToken": request_id, **params.get("_meta", {})}
            params = {**params, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        return self.send(message)

    def _authenticate(self, request: Any) -> Principal:
        return self.principal

    def _list(self, method: str, member: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            result = self.request(method, **params).result
            items += result[member]
            if "nextCursor" not in result:
                return items
            params = {"cursor": result["nextCursor"]}

    def _session_headers(self) -> dict[str, str]:
        given = {headers.PROTOCOL_VERSION: self.revision.name}
        if self.session_id is not None:
            given[headers.SESSION_ID] = self.session_id
        return given

    def _meta(self) -> dict[str, Any]:
        level = {} if self.log_level is None else {LOG_LEVEL_META_KEY: self.log_level}
        return {
            PROTOCOL_VERSION_META_KEY: self.revision.name,
            CLIENT_INFO_META_KEY: CLIENT_INFO,
            CLIENT_CAPABILITIES_META_KEY: self.capabilities,
            **level,
        }

    def _mirrored(self, message: Any) -> dict[str, str]:
        if not self.revision.modern or not isinstance(message, dict):
            return {}
        params = message.get("params", {})
        mirrored = {headers.METHOD: str(message.get("method", ""))}
        source = headers.NAME_SOURCES.get(mirrored[headers.METHOD])
        if source in params:
            mirrored[headers.NAME] = headers.encode(str(params[source]))
        tool = self.server.find_tool(str(params.get("name")))
        if tool is not None:
            arguments = params.get("arguments") or {}
            mirrored |= headers.mirror_parameters(tool.headers, arguments)
        return mirrored


def _check_host(request: HttpRequest) -> None:
    """Say how the host of Django's tests is allowed, where there is no test."""
    if "HTTP_HOST" in request.META:
        return
    try:
        request.get_host()
    except DisallowedHost as error:
        raise MCPFailure(
            f"{error} Django's test runners do so. Elsewhere, in a shell for example, call "
            "django.test.utils.setup_test_environment() first."
        ) from None


def _requires_input(answer: Answer) -> bool:
    result: dict[str, Any] = answer.message.get("result", {})
    return result.get("resultType") == "input_required"


class _View(MCPView):
    """The view, whose calls may ask a scripted user."""

    user: ScriptedUser | None = None

    def runner(self, request: HttpRequest) -> InlineRunner:
        """Return what runs the calls here, and asks the scripted user, where there is one."""
        return InlineRunner() if self.user is None else ScriptedRunner(self.user)
