"""Client ID Metadata Documents: what clients say of themselves, at the URL that is their id.

A client needs no registration where its id is the URL of a document about it (2026-07-28,
basic/authorization, "Client ID Metadata Documents"; draft-ietf-oauth-client-id-metadata-document).
Whoever names a URL has this site fetch it, so it is fetched with care: over HTTPS, from addresses
of the public Internet alone, without proxies and redirects, and bounded in time and size.

Nothing here knows of an authorization server; what becomes of a document is its matter.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import posixpath
import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from ...conf import LOOPBACK

MAX_SECONDS: Final = 5.0
"""For the name, the connection and the document together."""
MAX_DOCUMENT_BYTES: Final = 16 * 1024
MAX_URL_CHARACTERS: Final = 500
MAX_REDIRECT_URIS: Final = 50
MAX_ADDRESSES: Final = 4
"""Of a host, that are tried."""
MAX_NAME_CHARACTERS: Final = 100
SECRET_METHODS: Final = frozenset(
    {"client_secret_basic", "client_secret_post", "client_secret_jwt"}
)
"""What a client whose document everybody may read cannot do."""
UNSAFE_SCHEMES: Final = frozenset(
    {
        *("about", "blob", "data", "file", "filesystem", "ftp", "javascript", "jar", "mailto"),
        *("ssh", "tel", "vbscript", "view-source", "ws", "wss"),
    }
)
"""Of URLs at which a browser would do something else than hand a code to an application."""


_JSON: Final = re.compile(r"application/(?:[^/]+\+)?json")
"""What a document is served as. Where anybody may upload texts or pictures, the host does not vouch
for them."""


class DocumentRefused(Exception):
    """A client's document, or what it says, cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class ClientDocument:
    """What a client says of itself."""

    client_id: str
    """The URL of the document."""
    name: str
    """What the client calls itself: anybody may say so; or the host of its URL."""
    redirect_uris: tuple[str, ...]
    metadata: dict[str, Any] = field(repr=False)
    """All that the document says (RFC 7591, section 2)."""


def is_document_url(client_id: str) -> bool:
    """Return whether a client's id is meant to be the URL of its document."""
    return client_id.startswith("https://")


def fetch_client_document(client_id: str) -> ClientDocument:
    """Return the document at the URL that is a client's id.

    Takes :data:`MAX_SECONDS` at most. Raises :class:`DocumentRefused`.
    """
    parts = _checked_url(client_id)
    body = _Fetch(parts).get()
    try:
        metadata = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DocumentRefused(f"{client_id} has no JSON") from error
    return read_document(client_id, metadata)


def read_document(client_id: str, metadata: Any) -> ClientDocument:
    """Return the document of a client; raises :class:`DocumentRefused` for what is none."""
    if not isinstance(metadata, dict):
        raise DocumentRefused(f"{client_id} has no object of JSON")
    if metadata.get("client_id") != client_id:
        raise DocumentRefused(f"{client_id} is about another client_id")
    if metadata.get("client_secret") is not None:
        raise DocumentRefused(f"{client_id} shows everybody a secret")
    if _method_of(metadata) in SECRET_METHODS:
        raise DocumentRefused(f"{client_id} asks for a secret, which nobody can give it")
    uris = metadata.get("redirect_uris")
    if not isinstance(uris, list) or not 0 < len(uris) <= MAX_REDIRECT_URIS:
        raise DocumentRefused(f"{client_id} has no list of redirect_uris, or too many")
    for uri in uris:
        check_redirect_uri(uri)
    name = metadata.get("client_name")
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        name = urlsplit(client_id).hostname or ""
    return ClientDocument(
        client_id, name.strip()[:MAX_NAME_CHARACTERS], tuple(dict.fromkeys(uris)), metadata
    )


def _method_of(metadata: dict[str, Any]) -> Any:
    return metadata.get("token_endpoint_auth_method")


def check_redirect_uri(uri: Any) -> None:
    """Check that a code may be sent to a URI; raises :class:`DocumentRefused` and says why not.

    HTTPS, HTTP on the user's own machine (RFC 8252, section 7.3), or a scheme of an application's
    own (section 7.1), such as ``cursor://``.
    """
    problem = _problem_of(uri)
    if problem:
        raise DocumentRefused(f"The redirect_uri {str(uri)[:MAX_URL_CHARACTERS]!r} {problem}")


def leads_to_own_machine(uri: str) -> bool:
    """Return whether a URI leads to a program on the user's own machine.

    Any that runs there can take the place of the one that was meant.
    """
    parts = urlsplit(uri)
    return parts.scheme not in ("https", "http") or parts.hostname in LOOPBACK


def _problem_of(uri: Any) -> str:
    parts = _split(uri)
    if parts is None or not uri.startswith(f"{parts.scheme}://"):
        return "is not a URL with a scheme and //"
    if parts.fragment or "#" in uri:
        return "has a fragment"
    if "*" in uri:
        return "has a star, and must be a single URL"
    if "@" in parts.netloc:
        return "has a user name"
    if parts.scheme in UNSAFE_SCHEMES:
        return "has a scheme that is no application's"
    if parts.scheme in ("http", "https") and not parts.hostname:
        return "has no host"
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        return "is plain HTTP and not on this machine: use https"
    return ""


def _split(url: Any) -> SplitResult | None:
    """Return the parts of a URL; ``None`` where it is none, or one that can be read otherwise."""
    if not isinstance(url, str) or not 0 < len(url) <= MAX_URL_CHARACTERS:
        return None
    if not url.isascii() or not url.isprintable() or set(url) & set(' "\\<>^`{|}'):
        return None
    try:
        parts = urlsplit(url)
        is_valid = parts.port is None or parts.port > 0
    except ValueError:
        return None
    return parts if is_valid and parts.scheme else None


def _checked_url(client_id: str) -> SplitResult:
    """Check the id; what browsers and others could take for another URL is none.

    draft-ietf-oauth-client-id-metadata-document, section 3.
    """
    parts = _split(client_id)
    if parts is None or parts.scheme != "https" or not is_document_url(client_id):
        raise DocumentRefused("The client_id is no URL that begins with https://")
    if not parts.hostname or parts.netloc != parts.netloc.lower() or "@" in parts.netloc:
        raise DocumentRefused("The client_id has no host, one in capitals, or a user name")
    if "#" in client_id or "?" in client_id:
        raise DocumentRefused("The client_id has a query or a fragment")
    if parts.path in ("", "/") or posixpath.normpath(parts.path) != parts.path.rstrip("/"):
        raise DocumentRefused("The client_id has no path, or one with . or ..")
    return parts


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the public Internet.

    Not this machine, nor its networks, nor the services that clouds have at 169.254.169.254; nor an
    address of IPv6 that leads to such a one.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = [ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())]
        if ip.is_site_local or any(each and not is_public(str(each)) for each in inner):
            return False
        if ip.ipv4_mapped:
            return True
    is_special = ip.is_private or ip.is_loopback or ip.is_link_local or ip.is_reserved
    return ip.is_global and not (is_special or ip.is_multicast or ip.is_unspecified)


def addresses_of(host: str, port: int) -> list[tuple[int, Any]]:
    """Return the family and the socket address of each address of a host.

    Raises :class:`DocumentRefused` if any is not public: whoever names the host can make its name
    mean anything, another thing each time.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise DocumentRefused(f"The host {host} is not known") from error
    addresses: list[tuple[int, Any]] = [(family, address) for family, *_, address in found]
    if not addresses or not all(is_public(str(address[0])) for _, address in addresses):
        raise DocumentRefused(f"The host {host} is not on the public Internet")
    return addresses


def tls_context() -> ssl.SSLContext:
    """Return what certificates are checked by."""
    return ssl.create_default_context()


class _Connection(http.client.HTTPConnection):
    """By TLS, to the addresses that were looked at, whatever the name means by now."""

    default_port = 443
    connected: socket.socket | None = None
    """The socket, also once a response has taken it."""

    def connect(self) -> None:
        plain = _connected(addresses_of(self.host, self.port))
        try:
            secure = tls_context().wrap_socket(
                plain, server_hostname=self.host, do_handshake_on_connect=False
            )
        except BaseException:
            plain.close()
            raise
        self.sock = self.connected = secure
        secure.do_handshake()


def _connected(addresses: Sequence[tuple[int, Any]]) -> socket.socket:
    failure: OSError | None = None
    for family, address in addresses[:MAX_ADDRESSES]:
        found = socket.socket(family, socket.SOCK_STREAM)
        try:
            found.settimeout(MAX_SECONDS)
            found.connect(address)
        except OSError as error:
            failure = error
            found.close()
        else:
            return found
    raise failure or OSError("no address")


class _Fetch:
    """One GET. On a thread of its own: whoever waits for a name cannot be stopped otherwise."""

    def __init__(self, parts: SplitResult) -> None:
        self._url = parts.geturl()
        self._path = parts.path
        self._connection = _Connection(parts.hostname or "", parts.port, timeout=MAX_SECONDS)
        self._body = b""
        self._failure: Exception | None = None

    def get(self) -> bytes:
        thread = Thread(target=self._run, name="mcp-client-document", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system has no more threads to give
            raise DocumentRefused(f"{self._url} cannot be fetched now") from error
        thread.join(MAX_SECONDS)
        if thread.is_alive():
            self._stop()
            raise DocumentRefused(f"{self._url} takes too long")
        if isinstance(self._failure, DocumentRefused):
            raise self._failure
        if self._failure is not None:
            name = type(self._failure).__name__
            raise DocumentRefused(f"{self._url} cannot be reached: {name}") from self._failure
        return self._body

    def _run(self) -> None:
        try:
            self._connection.request("GET", self._path, headers={"Accept": "application/json"})
            with self._connection.getresponse() as response:
                if response.status != 200:
                    # A redirect would lead to what nobody has looked at.
                    raise DocumentRefused(f"{self._url} answers {response.status}, and not 200")
                kind = response.headers.get_content_type()
                if not _JSON.fullmatch(kind):
                    raise DocumentRefused(f"{self._url} is {kind}, and no JSON")
                self._body = response.read(MAX_DOCUMENT_BYTES + 1)
                if len(self._body) > MAX_DOCUMENT_BYTES:
                    raise DocumentRefused(f"{self._url} has more than {MAX_DOCUMENT_BYTES} bytes")
        except Exception as error:
            self._failure = error
        finally:
            self._connection.close()

    def _stop(self) -> None:
        try:
            if self._connection.connected is not None:
                self._connection.connected.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
