"""``FileLink``: a file that is not sent, but fetched by a URL that is signed and expires.

The URL is below that of the endpoint, so that whatever leads there leads to its files; see
:mod:`django_mcp.http.file_view` for the other end.
"""

from __future__ import annotations

import errno
import inspect
import mimetypes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from django.conf import settings as django_settings
from django.core import signing
from django.core.exceptions import (
    ImproperlyConfigured,
    PermissionDenied,
    SuspiciousFileOperation,
)
from django.core.files.storage import Storage, storages
from django.core.files.utils import validate_file_name
from django.db.models.fields.files import FieldFile
from django.http import HttpRequest
from django.urls import Resolver404, resolve
from django.utils.encoding import escape_uri_path
from mcp_types import ResourceLink

from .. import content
from ..current_partition import current_partition
from .base_urls import nearest_first
from .context import Context
from .errors import ToolError
from .exchange import Exchange
from .files import MAX_FILE_BYTES, file_block

FILE: Final = "mcp_file"
"""The argument of a view that has what comes after the endpoint's path, for a file."""
FILES: Final = "/files/"
PATH: Final = rf"{FILES}[A-Za-z0-9_.:\-]{{1,2000}}"
"""A regular expression of what may come after an endpoint's path: the signed name of a file."""

_SALT: Final = "django_mcp.FileLink.1"
"""To be counted up with the form of what is signed, so that no other form is taken for it."""
_SIGNATURES: Final = frozenset(("x-amz-signature", "x-goog-signature", "signature", "sig"))
"""What the signature is called in the URLs of storages that sign: S3, Google, CloudFront, Azure."""
_MISSING: Final = "There is no such file."
_NO_FILE: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG))
"""The errors of an operating system that say so."""


class LinkRefused(Exception):
    """Nothing is to be fetched by a link: it was not signed here, was changed, or has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedFile:
    """What a link says, and its signature vouches for."""

    server: str
    """The server that has offered it."""
    path: str
    """The path of the endpoint, below the script prefix: the link is good there alone."""
    partition: str
    storage: str
    """An alias in ``STORAGES``."""
    name: str
    """The file's name in that storage."""
    filename: str
    """What it is called where it is saved."""
    mime_type: str
    user: str
    """The key of the user for whom it was made; empty for anonymous callers."""
    for_caller: bool
    """Whether nobody else may fetch it."""
    until: int
    """When it expires, in seconds since 1970."""

    def signed(self) -> str:
        """Return what stands in the URL."""
        return signing.Signer(salt=_SALT).sign_object(asdict(self), compress=True)


def read_signed(text: str, *, server: str, path: str) -> SignedFile:
    """Return what a link says that was fetched at an endpoint; raises :class:`LinkRefused`."""
    try:
        given = SignedFile(**signing.Signer(salt=_SALT).unsign_object(text))
    except (signing.BadSignature, TypeError, ValueError) as error:
        raise LinkRefused("This is no link to a file of this site.") from error
    here = (server, path, current_partition())
    if (given.server, given.path, given.partition) != here:
        raise LinkRefused("This is no link to a file of this site.")
    if given.until < time.time():
        raise LinkRefused("This link has expired. Ask for the file again to get another one.")
    return given


class FileLink:
    """A file of a storage that clients fetch by a URL, signed and for a limited time.

    A tool or a prompt returns it, alone or among blocks, and its client gets a ``resource_link``;
    :meth:`url` has the URL alone, for structured output. ``file`` is the value of a ``FileField``,
    or the name of a file in ``storage``, which is an alias in ``STORAGES``.

    ``seconds`` is how long the link is good, by default ``DJANGO_MCP["FILE_LINK_SECONDS"]``.
    Whoever has it may fetch the file meanwhile, as long as the caller's user is active; with
    ``for_caller`` only who has logged in at the site as that user. ``inline_bytes`` is up to which
    size the file itself is sent instead. ``filename``, ``mime_type``, ``title`` and ``description``
    say what it is.

    Raises ``ValueError`` for a time that is not above zero, and ``ImproperlyConfigured`` for a
    storage that is not in ``STORAGES``.
    """

    def __init__(
        self,
        file: FieldFile | str,
        *,
        storage: str = "",
        seconds: int | None = None,
        for_caller: bool = False,
        inline_bytes: int = 0,
        filename: str = "",
        mime_type: str = "",
        title: str | None = None,
        description: str | None = None,
    ) -> None:
        if seconds is not None and seconds <= 0:
            raise ValueError(f"FileLink: seconds= must be more than 0, not {seconds}.")
        if isinstance(file, str):
            self._alias = storage or "default"
            self._storage = _storage(self._alias)
            name = file
        elif isinstance(file, FieldFile):
            name = file.name or ""
            self._storage = _storage(storage) if storage else file.storage
            self._alias = storage
        else:
            raise TypeError(
                f"A FileLink is made of a field's file, or of the name of a file in a storage, not "
                f"of {type(file).__name__}. Save what has none first: "
                'name = storages["default"].save("report.csv", file).'
            )
        self._name = _checked(name)
        self._seconds = seconds
        self._for_caller = for_caller
        self._inline_bytes = min(inline_bytes, MAX_FILE_BYTES)
        self._filename = filename or PurePath(name).name
        self._mime_type = mime_type or mimetypes.guess_type(self._filename)[0] or content.BINARY
        self._title, self._description = title, description

    def __repr__(self) -> str:
        return f"<FileLink {self._name!r}>"

    def url(self, ctx: Context) -> str:
        """Return the URL for the caller of ``ctx``. May touch the storage."""
        return self._url(ctx._exchange)

    def block(self, exchange: Exchange) -> content.ContentBlock:
        """Return what the client gets: a link, or the file where it is small.

        Raises :class:`ToolError` where there is no file.
        """
        size = self._size()
        if size is not None and 0 < self._inline_bytes >= size:
            with _missing_is_told(), self._storage.open(self._name) as file:
                file.name = self._filename
                return file_block(file, mime_type=self._mime_type)
        return ResourceLink(
            uri=self._url(exchange),
            name=self._filename,
            title=self._title,
            description=self._description,
            mime_type=self._mime_type,
            size=size,
        )

    def _url(self, exchange: Exchange) -> str:
        seconds = self._seconds or exchange.settings.file_link_seconds
        own = None if self._for_caller else _signed_by_storage(self._storage, self._name, seconds)
        return own or self._url_here(exchange, seconds)

    def _url_here(self, exchange: Exchange, seconds: int) -> str:
        user = exchange.principal.user_id
        if self._for_caller and not user:
            raise PermissionDenied("Only a user who has logged in may fetch this file.")
        request = exchange.http.django()
        path = endpoint_path(request, exchange.http.wanted_tools[0])
        signed = SignedFile(
            server=exchange.server_name,
            path=path,
            partition=current_partition(),
            storage=self._alias or _alias_of(self._storage),
            name=self._name,
            filename=self._filename,
            mime_type=self._mime_type,
            user=user,
            for_caller=self._for_caller,
            until=int(time.time()) + seconds,
        ).signed()
        _check_is_served(request, f"{path}{FILES}{signed}")
        return _absolute(request, f"{path}{FILES}{signed}", exchange.settings.base_url)

    def _size(self) -> int | None:
        try:
            with _missing_is_told():
                return self._storage.size(self._name)
        except NotImplementedError:
            return None


def with_links(value: Any, exchange: Exchange) -> Any:
    """Return what a function returned, with links as the blocks that they become."""
    if isinstance(value, FileLink):
        return value.block(exchange)
    if isinstance(value, (list, tuple)) and any(isinstance(each, FileLink) for each in value):
        return [each.block(exchange) if isinstance(each, FileLink) else each for each in value]
    return value


def endpoint_path(request: HttpRequest, behind: str) -> str:
    """Return the path of an endpoint below the script prefix.

    ``behind`` is what the request has behind it.
    """
    return request.path_info.rstrip("/").removesuffix(behind)


@contextmanager
def _missing_is_told() -> Iterator[None]:
    """Say that there is no such file, whatever a storage makes of a name that may be a client's."""
    try:
        yield
    except SuspiciousFileOperation as error:
        raise ToolError(_MISSING) from error
    except OSError as error:
        if isinstance(error, FileNotFoundError) or error.errno in _NO_FILE:
            raise ToolError(_MISSING) from error
        raise


def _checked(name: str) -> str:
    if not name:
        raise ToolError("There is no file.")
    if "\x00" in name:
        raise ToolError(_MISSING)
    try:
        # Storages check it as well, but not all of them.
        return str(validate_file_name(name, allow_relative_path=True))
    except SuspiciousFileOperation as error:
        raise ToolError(_MISSING) from error


def _storage(alias: str) -> Storage:
    if alias not in django_settings.STORAGES:
        known = ", ".join(map(repr, django_settings.STORAGES))
        raise ImproperlyConfigured(
            f"FileLink: STORAGES has no {alias!r}, and links lead to no other storage. It has: "
            f"{known}."
        )
    return storages[alias]


def _alias_of(storage: Any) -> str:
    for alias in django_settings.STORAGES:
        # That of a field may be the object around the default one.
        if storages[alias] == storage:
            return alias
    raise ImproperlyConfigured(
        f"FileLink: the file is in a {type(storage).__name__} that STORAGES does not have, and "
        "links lead to no other storage. Add it there, and give the field "
        '`storage=storages["..."]`, or say which one it is: FileLink(..., storage="...").'
    )


def _signed_by_storage(storage: Any, name: str, seconds: int) -> str:
    """Return the storage's own URL, if that is signed; else nothing: anybody could guess it."""
    try:
        takes_time = "expire" in inspect.signature(storage.url).parameters
        url: str = storage.url(name, expire=seconds) if takes_time else storage.url(name)
    except (NotImplementedError, ValueError):
        return ""
    parts = urlsplit(url)
    is_signed = not _SIGNATURES.isdisjoint(map(str.lower, parse_qs(parts.query)))
    return url if is_signed and parts.scheme in ("http", "https") else ""


def _check_is_served(request: Any, path: str) -> None:
    if request.resolver_match is None:
        return  # the test client has called the view itself
    try:
        served = FILE in resolve(path, getattr(request, "urlconf", None)).kwargs
    except Resolver404:
        served = False
    if not served:
        raise ImproperlyConfigured(
            f"FileLink: no files are served below {request.path_info}. Give the endpoint its URL "
            'by django_mcp.endpoint("mcp"), or by include("django_mcp.urls"), and not by path().'
        )


def _absolute(request: HttpRequest, path: str, bases: Any) -> str:
    for base in nearest_first(bases, request.get_host()):
        return f"{base}{escape_uri_path(path)}"
    prefix = request.path.removesuffix(request.path_info)
    return request.build_absolute_uri(f"{prefix}{path}")
