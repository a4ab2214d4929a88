"""Files that a :class:`~django_mcp.FileLink` leads to, below the URL of an endpoint.

Whoever has a link may fetch its file, with nothing but that: what else a site asks of requests to
the endpoint is in the signature, or said by the link. Nothing that is not signed is even looked at.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import (
    ImproperlyConfigured,
    SuspiciousFileOperation,
    ValidationError,
)
from django.core.files.base import File
from django.core.files.storage import InvalidStorageError, storages
from django.core.files.utils import validate_file_name
from django.core.handlers.asgi import ASGIRequest
from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from ..server.file_links import (
    FILES,
    LinkRefused,
    SignedFile,
    endpoint_path,
    read_signed,
)
from ..server.registry import MCPServer

_METHODS: Final = ("GET", "HEAD")
_TEXT: Final = "text/plain; charset=utf-8"
_CHUNK: Final = 64 * 1024
_RANGE: Final = re.compile(
    r"bytes=(?:(?P<first>\d{1,18})-(?P<last>\d{0,18})|-(?P<suffix>\d{1,18}))"
)
_HEADERS: Final = {
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""The URL is a secret, and what a file holds is no page of the site."""


def serve_file(request: HttpRequest, server: MCPServer, behind: str) -> HttpResponseBase:
    """Return the file that a link names, or a page of text that says why not.

    ``behind`` is what the request has behind the path of its endpoint.
    """
    if request.method not in _METHODS:
        return HttpResponseNotAllowed(_METHODS)
    path = endpoint_path(request, behind)
    try:
        link = read_signed(behind.removeprefix(FILES), server=server.name, path=path)
    except LinkRefused as refused:
        return _said(str(refused), 404)
    if link.for_caller and not _user_of(request).is_authenticated:
        return redirect_to_login(request.get_full_path())
    if not _is_good_for(link, request):
        return _said("This link is for somebody else, who has to log in here.", 403)
    return _response(request, link)


def _user_of(request: HttpRequest) -> Any:
    user = getattr(request, "user", None)
    if user is None:
        raise ImproperlyConfigured(
            "FileLink(for_caller=True) asks who has logged in at the site, which "
            "django.contrib.auth.middleware.AuthenticationMiddleware finds out: add it to "
            "MIDDLEWARE."
        )
    return user


def _is_good_for(link: SignedFile, request: HttpRequest) -> bool:
    if link.for_caller:
        return str(_user_of(request).pk) == link.user
    return not link.user or _is_active(link.user)


def _is_active(key: str) -> bool:
    try:
        user = get_user_model()._default_manager.filter(pk=key).first()
    except (ValueError, ValidationError):
        return False  # of another user model
    return user is not None and bool(getattr(user, "is_active", True))


def _response(request: HttpRequest, link: SignedFile) -> HttpResponseBase:
    try:
        storage = storages[link.storage]
        file = storage.open(str(validate_file_name(link.name, allow_relative_path=True)))
    except (OSError, InvalidStorageError, SuspiciousFileOperation):
        return _said("The file is no longer there.", 404)
    part = _wanted(request, file)
    if part is None:
        response: HttpResponseBase = _said("The file has not so many bytes.", 416)
        response.headers["Content-Range"] = f"bytes */{file.size}"
        file.close()
        return response
    response = _streamed(request, file, part)
    for name, value in {**_HEADERS, **_headers_of(link, part)}.items():
        response.headers[name] = value
    response.status_code = 206 if part.is_some else 200
    return response


def _headers_of(link: SignedFile, part: _Part) -> dict[str, str]:
    found = {
        "Content-Type": link.mime_type,
        "Content-Disposition": content_disposition_header(True, link.filename) or "attachment",
        "Content-Length": str(part.length),
        "Accept-Ranges": "bytes",
    }
    if part.is_some:
        last = part.first + part.length - 1
        found["Content-Range"] = f"bytes {part.first}-{last}/{part.size}"
    return found


@dataclass(frozen=True, slots=True)
class _Part:
    """Which bytes of a file are sent."""

    first: int
    length: int
    size: int
    """Of the whole file."""
    is_some: bool
    """Whether they were asked for, instead of all."""


def _wanted(request: HttpRequest, file: File[Any]) -> _Part | None:
    """Return the part that a request asks for; ``None`` if the file ends before it.

    RFC 9110, section 14.2: what is not understood is ignored, as are several ranges; and so is one
    that depends on a validator (section 13.1.5), for none is ever sent.
    """
    size = file.size
    whole = _Part(0, size, size, is_some=False)
    found = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    is_asked = request.method == "GET" and "If-Range" not in request.headers
    if found is None or not is_asked or not file.seekable():
        return whole
    if found["suffix"]:
        first = max(size - int(found["suffix"]), 0)
        last = size - 1
    else:
        first = int(found["first"])
        last = int(found["last"]) if found["last"] else size - 1
        if found["last"] and last < first:
            return whole  # section 14.1.1: it is not valid
    length = min(last, size - 1) + 1 - first
    return _Part(first, length, size, is_some=True) if length > 0 else None


def _streamed(request: HttpRequest, file: File[Any], part: _Part) -> HttpResponseBase:
    if request.method == "HEAD":
        file.close()
        return HttpResponse()
    if part.first:
        file.seek(part.first)
    response: StreamingHttpResponse
    if isinstance(request, ASGIRequest):
        # Django would read all of it into memory first.
        response = StreamingHttpResponse(_achunks(file, part.length))
        response._resource_closers.append(file.close)  # type: ignore[attr-defined]
    elif part.is_some:
        response = StreamingHttpResponse(_chunks(file, part.length))
        response._resource_closers.append(file.close)  # type: ignore[attr-defined]
    else:
        response = FileResponse(file)  # which servers may hand to the kernel
    return response


def _chunks(file: File[Any], left: int) -> Iterator[bytes]:
    while left and (data := file.read(min(left, _CHUNK))):
        left -= len(data)
        yield data


async def _achunks(file: File[Any], left: int) -> AsyncIterator[bytes]:
    read = sync_to_async(file.read)
    while left and (data := await read(min(left, _CHUNK))):
        left -= len(data)
        yield data


def _said(text: str, status: int) -> HttpResponse:
    return HttpResponse(text, status=status, content_type=_TEXT, headers=_HEADERS)
