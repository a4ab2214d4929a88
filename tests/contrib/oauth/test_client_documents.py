"""Documents of clients are fetched from the public Internet alone, and within bounds."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from django_mcp.contrib.oauth import client_documents
from django_mcp.contrib.oauth.client_documents import (
    MAX_DOCUMENT_BYTES,
    DocumentRefused,
    check_redirect_uri,
    fetch_client_document,
    is_public,
)
from tests.support.waiting import BOUND

from .document_host import DocumentHost, serving_documents


@pytest.fixture(scope="module")
def serving(tmp_path_factory) -> Iterator[DocumentHost]:
    with serving_documents(tmp_path_factory.mktemp("documents")) as found:
        yield found


@pytest.fixture
def host(serving, monkeypatch) -> DocumentHost:
    """A host that is taken for one of the public Internet."""
    serving.shown.clear()
    serving.asked.clear()
    monkeypatch.setattr(client_documents, "is_public", lambda address: True)
    monkeypatch.setattr(client_documents, "tls_context", serving.trusted)
    return serving


def test_a_document_says_who_a_client_is(host):
    url = host.show(client_name=" Editor ", redirect_uris=["cursor://a/b", "cursor://a/b"])
    found = fetch_client_document(url)
    assert (found.client_id, found.name) == (url, "Editor")
    assert found.redirect_uris == ("cursor://a/b",)
    assert found.metadata["client_name"] == " Editor "


@pytest.mark.parametrize("name", [None, "", 7, "a\u202eb", "a\nb"])
def test_a_client_without_a_name_has_that_of_its_host(host, name):
    assert fetch_client_document(host.show(client_name=name)).name == "127.0.0.1"


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "https://other.example/client.json"},
        {"client_secret": "s3cret"},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"redirect_uris": None},
        {"redirect_uris": []},
        {"redirect_uris": "https://a.example/"},
        {"redirect_uris": ["http://evil.example/cb"]},
        {"redirect_uris": [f"https://a.example/{number}" for number in range(51)]},
    ],
    ids=str,
)
def test_documents_that_cannot_be_meant_are_refused(host, changed):
    with pytest.raises(DocumentRefused):
        fetch_client_document(host.show(**changed))


@pytest.mark.parametrize(
    "shown",
    [
        b"no JSON",
        b"[" * 10_000,
        ["a"],
        (500, {}, b"{}"),
        (201, {}, b"{}"),
        (200, {"Content-Length": "1000000"}, b"{}"),
        None,
    ],
    ids=["text", "nested", "list", "500", "201", "cut", "none"],
)
def test_what_is_no_document_is_refused(host, shown):
    host.shown["/client.json"] = shown
    with pytest.raises(DocumentRefused):
        fetch_client_document(f"{host.url}/client.json")


@pytest.mark.parametrize(
    ("kind", "is_taken"),
    [
        ("application/json; charset=utf-8", True),
        ("Application/client-metadata+JSON", True),
        ("text/plain", False),
        ("image/png", False),
        ("text/html", False),
        ("application/octet-stream", False),
        ("", False),
    ],
)
def test_what_somebody_has_uploaded_is_nothing_that_its_host_says(host, kind, is_taken):
    url = host.show()
    text = json.dumps(host.shown["/client.json"]).encode()
    host.shown["/client.json"] = (200, {"Content-Type": kind}, text)
    if is_taken:
        assert fetch_client_document(url).client_id == url
    else:
        with pytest.raises(DocumentRefused, match="no JSON"):
            fetch_client_document(url)


@pytest.mark.parametrize("more", [0, 1])
def test_a_document_has_so_many_bytes_and_no_more(host, more):
    url = host.show()
    text = json.dumps(host.shown["/client.json"]).encode()
    host.shown["/client.json"] = text.ljust(MAX_DOCUMENT_BYTES + more)
    if more:
        with pytest.raises(DocumentRefused, match="more than"):
            fetch_client_document(url)
    else:
        assert fetch_client_document(url).client_id == url


def test_nobody_follows_a_redirect(host):
    elsewhere = host.show("/elsewhere")
    host.shown["/client.json"] = (302, {"Location": elsewhere}, b"")
    with pytest.raises(DocumentRefused, match="302"):
        fetch_client_document(f"{host.url}/client.json")
    assert host.asked["/elsewhere"] == 0


def test_a_host_that_drips_is_left(host, monkeypatch):
    monkeypatch.setattr(client_documents, "MAX_SECONDS", 0.5)
    monkeypatch.setattr(host, "drips", True)
    url = host.show()
    begun = time.monotonic()
    with pytest.raises(DocumentRefused, match="too long"):
        fetch_client_document(url)
    assert time.monotonic() - begun < 5
    assert host.ended.wait(BOUND), "the connection was closed"
    host.ended.clear()


def test_a_name_that_nobody_answers_for_holds_nobody_up(host, monkeypatch):
    asked, ended = threading.Event(), threading.Event()

    def wait(*args: Any, **options: Any) -> Any:
        asked.set()
        ended.wait(BOUND)
        raise OSError

    monkeypatch.setattr(client_documents, "MAX_SECONDS", 0.2)
    monkeypatch.setattr(socket, "getaddrinfo", wait)
    with pytest.raises(DocumentRefused, match="too long"):
        fetch_client_document("https://slow.example/client.json")
    assert asked.is_set()
    ended.set()


def test_another_hosts_certificate_is_refused(host, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(client_documents, "is_public", lambda address: True)
    with pytest.raises(DocumentRefused, match="SSLCertVerificationError"):
        fetch_client_document(host.show())
    assert not host.asked


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1"),
        *("169.254.169.254", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1"),
        *("240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1"),
        *("fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "::ffff:127.0.0.1"),
        *("::ffff:169.254.169.254", "2002:7f00:1::", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1"),
        "::127.0.0.1",
    ],
)
def test_addresses_that_are_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "::ffff:1.1.1.1", "2606:4700::1111"])
def test_addresses_that_are_public(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "name",
    [
        *("127.0.0.1", "localhost", "169.254.169.254", "[::1]", "[::ffff:7f00:1]"),
        *("127.1", "2130706433", "0x7f000001", "0"),
    ],
)
def test_no_document_comes_from_here(serving, monkeypatch, name):
    """However the address is written."""
    monkeypatch.setattr(client_documents, "tls_context", serving.trusted)
    port = serving.url.rpartition(":")[2]
    serving.asked.clear()
    with pytest.raises(DocumentRefused, match=r"not on the public Internet|not known"):
        fetch_client_document(f"https://{name}:{port}/client.json")
    assert not serving.asked


def test_a_name_that_means_something_here_is_refused_even_if_it_means_more(monkeypatch):
    here = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 443))
    there = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("1.1.1.1", 443))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: [there, here])
    with pytest.raises(DocumentRefused, match="public Internet"):
        fetch_client_document("https://both.example/client.json")


def test_a_name_is_asked_for_once(host, monkeypatch):
    """Whose meaning changes between the look and the connection finds no second look."""
    known = socket.getaddrinfo
    answers = []

    def find(*args: Any, **options: Any) -> Any:
        answers.append(args)
        return known(*args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", find)
    assert fetch_client_document(host.show()).name == "Editor"
    assert len(answers) == 1


@pytest.mark.parametrize(
    "url",
    [
        *("", "http://a.example/c", "HTTPS://a.example/c", "https:/c", "https://a.example"),
        *("https://a.example/", "https://A.example/c", "https://u:p@a.example/c"),
        *("https://a.example/c?x=1", "https://a.example/c#f", "https://a.example/b/../c"),
        *("https://a.example/./c", "https://a.example/c d", "https://a.example\\@b.example/c"),
        *("https://a.example:0/c", "https://a.example:99999/c", "https://\u00e4.example/c"),
        *("https:///c", "https://a.example/" + "c" * 500, "https://a.example/c\n"),
    ],
    ids=ascii,
)
def test_ids_that_are_no_url_of_a_document(monkeypatch, url):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: pytest.fail("fetched"))
    with pytest.raises(DocumentRefused, match="client_id"):
        fetch_client_document(url)


@pytest.mark.parametrize(
    "uri",
    [
        *("https://claude.ai/api/mcp/auth_callback", "http://localhost/cb", "http://[::1]:1/cb"),
        *("http://127.0.0.1:3118/callback", "cursor://anysphere.cursor-mcp/oauth/callback"),
        "https://a.example/cb?x=1",
    ],
)
def test_where_codes_may_go(uri):
    check_redirect_uri(uri)


@pytest.mark.parametrize(
    "uri",
    [
        *("http://a.example/cb", "http://127.0.0.1.evil.example/", "javascript://x/%0aalert(1)"),
        *("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "https://*.a.example/"),
        *("https://a.example/#f", "https://u@a.example/", "/cb", "", 7, None, "https:///cb"),
        *("vbscript://x", "https://a.example\\.b.example/", "HTTP://a.example/", "http://"),
    ],
    ids=str,
)
def test_where_codes_may_not_go(uri):
    with pytest.raises(DocumentRefused, match="redirect_uri"):
        check_redirect_uri(uri)
