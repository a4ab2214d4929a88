"""The requests that an admin is given: a caller's own, as the admin's pages would have it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from html import unescape
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.messages import constants
from django.contrib.messages.storage.base import BaseStorage
from django.db import DatabaseError, connections
from django.http import HttpRequest, QueryDict
from django.urls import NoReverseMatch, Resolver404, resolve, reverse
from django.utils.datastructures import MultiValueDict
from django.utils.html import strip_tags
from django.utils.safestring import SafeString

from ...server.api_requests import api_request
from ...server.context import Context

LEVELS: Final = {
    constants.DEBUG: "debug",
    constants.INFO: "info",
    constants.SUCCESS: "notice",
    constants.WARNING: "warning",
    constants.ERROR: "error",
}
"""The levels of Django's messages, each with that of RFC 5424."""

_BREAKS: Final = re.compile(r"<(?:br|/p|/li|/div|/td|/tr|/h\d)\b[^>]*>", re.IGNORECASE)


class AdminContext(Context):
    """The context of a call that an admin answers, with the request for it."""

    __slots__ = ("_admin_request",)

    @property
    def admin_request(self) -> Any:
        """The HTTP request, the same for all of the call, with messages that are noted."""
        if not hasattr(self, "_admin_request"):
            request = api_request(self.request, "GET")
            request.user = self.user
            request._messages = NotedMessages(self, request)
            self._admin_request: Any = request
        return self._admin_request

    @property
    def messages(self) -> list[str]:
        """What the admin has said by ``message_user()`` so far, in this call."""
        noted: NotedMessages = self.admin_request._messages
        return noted.texts


class NotedMessages(BaseStorage):
    """Messages of ``django.contrib.messages``: log messages to the client, kept for the result."""

    def __init__(self, ctx: Context, request: HttpRequest) -> None:
        super().__init__(request)
        self._ctx = ctx
        self.texts: list[str] = []

    def add(self, level: int, message: Any, extra_tags: str | None = "") -> None:
        """Note a message, and send it to the client."""
        text = as_text(message)
        if not text:
            return
        name = LEVELS.get(level, "info")
        self.texts.append(text if level < constants.WARNING else f"{name}: {text}")
        self._ctx.log(name, text)

    def _get(self, *args: Any, **kwargs: Any) -> tuple[list[Any], bool]:
        return [], True

    def _store(self, messages: Any, response: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return []


def as_text(value: Any) -> str:
    """Return a text without the HTML that it may be marked to be."""
    value = str(value) if not isinstance(value, str) else value
    if not isinstance(value, SafeString):
        return str(value)
    return " ".join(unescape(strip_tags(_BREAKS.sub(" ", value))).split())


def on_page(
    request: Any, model_admin: Any, page: str, *args: Any, posted: Mapping[str, Any] | None = None
) -> Any:
    """Have a request be one to a page of an admin: ``changelist``, ``add`` or ``change``.

    ``posted`` are the values of its form; without them it is a ``GET``.
    """
    opts = model_admin.opts
    request.method = "GET" if posted is None else "POST"
    request._post, request._files = _form_data(posted or {}), MultiValueDict()
    try:
        name = f"admin:{opts.app_label}_{opts.model_name}_{page}"
        path = reverse(name, args=args, current_app=model_admin.admin_site.name)
        request.path = request.path_info = path
        request.resolver_match = resolve(path)
    except (NoReverseMatch, Resolver404):
        pass  # an admin without pages
    request.current_app = model_admin.admin_site.name
    return request


def request_of(user: Any) -> Any:
    """Return a request of which nothing is known but who asks."""
    request: Any = HttpRequest()
    request.method, request.user = "GET", user
    request.META = {"SERVER_NAME": "localhost", "SERVER_PORT": "80", "REQUEST_METHOD": "GET"}
    request._messages = DroppedMessages(request)
    return request


class DroppedMessages(BaseStorage):
    """Takes messages of which nobody will know."""

    def add(self, level: int, message: Any, extra_tags: str | None = "") -> None:
        """Drop it."""

    def _get(self, *args: Any, **kwargs: Any) -> tuple[list[Any], bool]:
        return [], True

    def _store(self, messages: Any, response: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return []


def describing_request() -> Any:
    """Return a request by which an admin says what there is, for whoever may do all.

    Schemas are the same for all callers. What one of them may not have is refused when he calls.
    """
    user: Any = get_user_model()()
    user.pk = UUID(int=0) if isinstance(user._meta.pk.get_default(), UUID) else 0
    for name in ("is_superuser", "is_staff", "is_active"):
        with suppress(AttributeError):  # a model of the site's own may work it out
            setattr(user, name, True)
    user.has_perm = user.has_perms = user.has_module_perms = _always
    return request_of(user)


def described(ask: Callable[[], Any], otherwise: Any) -> Any:
    """Return what an admin says where there is no caller, or else ``otherwise``.

    When tools are registered there may be no database yet, and there is no session, so methods of a
    site may fail for want of either.
    """
    try:
        with without_database():
            return ask()
    except Exception:  # a site's method, which may expect a request of a caller
        return otherwise


class NoDatabase(DatabaseError):
    """A method of an admin has asked the database where it must not."""


@contextmanager
def without_database() -> Iterator[None]:
    """Refuse every statement within the block."""

    def refuse(*args: Any) -> Any:
        raise NoDatabase("No database is asked while tools are registered.")

    each = connections.all()
    for connection in each:
        connection.execute_wrappers.append(refuse)
    try:
        yield
    finally:
        for connection in each:
            connection.execute_wrappers.remove(refuse)


def _always(*args: Any, **kwargs: Any) -> bool:
    return True


def _form_data(values: Mapping[str, Any]) -> QueryDict:
    data = QueryDict(mutable=True)
    for name, value in values.items():
        several = value if isinstance(value, list) else [value]
        data.setlist(name, ["" if each is None else str(each) for each in several])
    data._mutable = False
    return data
