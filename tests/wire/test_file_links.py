"""Links to files: signed, for a time, good where they were made and nowhere else."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core import signing
from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage, storages
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, include, path, reverse

from django_mcp import Context, FileLink, MCPServer, MCPView, endpoint
from django_mcp.auth import Principal
from django_mcp.partitions import Partitions
from django_mcp.server import file_links
from django_mcp.server.file_links import SignedFile
from tests.support.answers import HTTPAnswer
from tests.support.caller import Caller
from tests.support.entrances import Entrance
from tests.support.messages import LEGACY, MODERN
from tests.support.sites import urlconf

DATA = bytes(range(256)) * 1000
REVISIONS = (LEGACY[-1], MODERN)

server = MCPServer("archive")
other = MCPServer("other")


@server.tool
def fetch(file: str = "big.bin", storage: str = "default", seconds: int = 60) -> FileLink:
    """Fetch a file."""
    return FileLink(file, storage=storage, seconds=seconds)


@server.tool
def mine(ctx: Context) -> dict[str, str]:
    """Return the URL of a file that is for its caller."""
    return {"url": FileLink("big.bin", for_caller=True).url(ctx)}


def caller_named(request: Any) -> Principal:
    """Take whom a header names for the caller."""
    name = request.headers.get("X-User")
    return Principal(User.objects.get(username=name) if name else AnonymousUser(), scopes=None)


@pytest.fixture(autouse=True)
def site(settings, tmp_path):
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {
        name: {"BACKEND": backend, "OPTIONS": {"location": tmp_path / name}}
        for name in ("default", "exports")
    }
    (tmp_path / "secret.txt").write_text("not in any storage")
    storages["default"].save("big.bin", ContentFile(DATA))
    storages["exports"].save("year/päper 1.html", ContentFile(b"<script>"))
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=server, auth=caller_named, name="archive"),
        endpoint("copy/mcp", server=server, auth=caller_named),
        endpoint("other/mcp", server=other, auth=caller_named),
        path("<slug:team>/plain", MCPView.as_view(server=server, auth=caller_named)),
        path("", include("django_mcp.well_known")),
    )
    return settings


def link(caller: Caller, tool: str = "fetch", **arguments: Any) -> dict[str, Any]:
    (block,) = caller.tool(tool, **arguments).result["content"]
    return dict(block)


def get(entrance: Entrance, url: str, method: str = "GET", **headers: str) -> HTTPAnswer:
    return entrance.send(method, urlsplit(url).path, [*headers.items()])


def signed_in(url: str) -> SignedFile:
    text = urlsplit(url).path.rpartition("/")[2]
    return SignedFile(**signing.Signer(salt=file_links._SALT).unsign_object(text))


def forged(url: str, salt: str = file_links._SALT, key: str | None = None, **changes: Any) -> str:
    """The same link, but for some of what it says, or for how it is signed."""
    path = urlsplit(url).path.rpartition("/")[0]
    said = asdict(replace(signed_in(url), **changes))
    signer = signing.Signer(salt=salt, key=key)
    return f"{path}/{signer.sign_object(said, compress=True)}"


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_file_is_fetched_by_the_link_that_a_tool_returns(entrance, revision):
    block = link(Caller(entrance).in_revision(revision))
    assert block["type"] == "resource_link"
    assert (block["name"], block["size"]) == ("big.bin", len(DATA))
    assert block["mimeType"] == "application/octet-stream"
    assert block["uri"].startswith("http://testserver/mcp/files/")
    answer = get(entrance, block["uri"])
    assert (answer.status, answer.body) == (200, DATA)
    assert answer.header("Content-Length") == str(len(DATA))
    assert answer.header("Content-Disposition") == 'attachment; filename="big.bin"'


def test_what_is_fetched_is_no_page_of_the_site(entrance, settings):
    settings.MIDDLEWARE = []  # SecurityMiddleware would say some of it as well
    block = link(Caller(entrance), file="year/päper 1.html", storage="exports")
    answer = get(entrance, block["uri"])
    assert answer.body == b"<script>"
    assert answer.header("Content-Type") == "text/html"
    assert answer.header("X-Content-Type-Options") == "nosniff"
    assert answer.header("Cache-Control") == "private, no-store"
    assert answer.header("Referrer-Policy") == "no-referrer"
    assert "sandbox" in str(answer.header("Content-Security-Policy"))
    said = answer.header("Content-Disposition")
    assert said == "attachment; filename*=utf-8''p%C3%A4per%201.html"


def test_the_oldest_revision_gets_the_url_as_text(entrance):
    block = link(Caller(entrance).opened(LEGACY[0]))
    assert block["type"] == "text"
    assert get(entrance, block["text"].removeprefix("big.bin: ")).body == DATA


def test_head_says_what_get_would_send(entrance):
    url = link(Caller(entrance))["uri"]
    whole, head = get(entrance, url), get(entrance, url, "HEAD", Range="bytes=0-1")
    assert (head.status, head.body) == (200, b"")
    for name in ("Content-Length", "Content-Type", "Content-Disposition", "Accept-Ranges"):
        assert head.header(name) == whole.header(name)


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "OPTIONS"])
def test_other_methods_are_refused(entrance, method):
    answer = get(entrance, link(Caller(entrance))["uri"], method)
    assert (answer.status, answer.header("Allow")) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=10-99", 10, 99),
        ("bytes=255000-", 255000, 255999),
        ("bytes=255000-999999999", 255000, 255999),
        ("bytes=-7", 255993, 255999),
        ("bytes=-999999999", 0, 255999),
    ],
)
def test_a_part_is_sent_that_was_asked_for(entrance, asked, first, last):
    answer = get(entrance, link(Caller(entrance))["uri"], Range=asked)
    assert answer.status == 206
    assert answer.body == DATA[first : last + 1]
    assert answer.header("Content-Length") == str(last + 1 - first)
    assert answer.header("Content-Range") == f"bytes {first}-{last}/256000"


@pytest.mark.parametrize("asked", ["bytes=256000-", "bytes=999999-9999999", "bytes=-0"])
def test_a_part_that_is_not_there_is_refused(entrance, asked):
    answer = get(entrance, link(Caller(entrance))["uri"], Range=asked)
    assert (answer.status, answer.header("Content-Range")) == (416, "bytes */256000")


@pytest.mark.parametrize(
    "headers",
    [
        {"Range": "bytes=9-1"},
        {"Range": "bytes=0-1,5-6"},
        {"Range": "lines=0-1"},
        {"Range": "bytes=-"},
        {"Range": "bytes=0-1", "If-Range": '"x"'},
        {"Range": f"bytes={'9' * 5000}-"},
    ],
)
def test_what_is_not_understood_gets_the_whole(entrance, headers):
    answer = get(entrance, link(Caller(entrance))["uri"], **headers)
    assert (answer.status, len(answer.body)) == (200, len(DATA))


def assert_refused(answer: HTTPAnswer, said: str = "no link to a file", status: int = 404) -> None:
    assert answer.status == status
    assert said in answer.body.decode()
    assert answer.header("Content-Type") == "text/plain; charset=utf-8"


def test_a_changed_link_opens_nothing(entrance):
    url = link(Caller(entrance))["uri"]
    stem, _, signature = url.rpartition(":")
    for changed in (
        f"{stem}x:{signature}",
        f"{stem}:{signature[:-1]}",
        f"{stem}:{'A' * len(signature)}",
        stem,
        f"{stem}:",
        f"{url.rpartition('/')[0]}/x",
    ):
        assert_refused(get(entrance, changed))


def test_what_was_signed_for_another_purpose_opens_nothing(entrance):
    url = link(Caller(entrance))["uri"]
    assert get(entrance, forged(url)).status == 200
    assert_refused(get(entrance, forged(url, salt="django_mcp.requestState.1")))
    assert_refused(get(entrance, forged(url, salt="django.core.signing")))
    assert_refused(get(entrance, forged(url, key="another key")))
    signer = signing.Signer(salt=file_links._SALT)
    place = urlsplit(url).path.rpartition("/")[0]
    for said in ({"name": "big.bin"}, ["big.bin"], "big.bin"):
        assert_refused(get(entrance, f"{place}/{signer.sign_object(said)}"))


def test_a_link_expires(entrance, monkeypatch):
    url = link(Caller(entrance), seconds=60)["uri"]
    now = time.time()
    monkeypatch.setattr(file_links.time, "time", lambda: now + 58)
    assert get(entrance, url).status == 200
    monkeypatch.setattr(file_links.time, "time", lambda: now + 62)
    assert_refused(get(entrance, url), "This link has expired.")


def test_the_setting_says_how_long_where_the_tool_does_not(entrance, settings):
    user(entrance, "anna")
    for seconds in (600, 7):
        settings.DJANGO_MCP = {**settings.DJANGO_MCP, "FILE_LINK_SECONDS": seconds}
        left = signed_in(url_of_mine(entrance, "anna")).until - time.time()
        assert seconds - 5 < left <= seconds


def test_a_link_is_good_at_its_own_endpoint(entrance):
    place, _, text = link(Caller(entrance))["uri"].rpartition("/files/")
    assert place == "http://testserver/mcp"
    for elsewhere in ("/copy/mcp", "/other/mcp", "/mcp/readonly"):
        assert_refused(get(entrance, f"{elsewhere}/files/{text}"))
    assert get(entrance, f"/mcp/files/{text}/").status == 200


def test_a_link_of_another_server_opens_nothing(entrance):
    url = link(Caller(entrance))["uri"]
    assert_refused(get(entrance, forged(url, server="other")))
    assert_refused(get(entrance, forged(url, partition="acme")))


@pytest.mark.parametrize("after", ["", "/", "/readonly", "/x/a"])
def test_a_client_that_chose_tools_gets_the_same_links(entrance, after):
    @server.tool(name="chosen", tags=["a"], read_only=True)
    def chosen() -> FileLink:
        return FileLink("big.bin")

    try:
        url = link(Caller(entrance, path=f"/mcp{after}"), "chosen")["uri"]
    finally:
        del server._tools["chosen"]
    assert url.startswith("http://testserver/mcp/files/")
    assert get(entrance, url).body == DATA


TRAVERSALS = ["../secret.txt", "a/../../secret.txt", "/etc/passwd", "..", "x/.."]


@pytest.mark.parametrize("name", TRAVERSALS)
def test_no_name_leads_out_of_a_storage(entrance, name):
    failed = Caller(entrance).tool("fetch", file=name).result
    assert failed["isError"]
    assert failed["content"][0]["text"] == "There is no such file."
    url = link(Caller(entrance))["uri"]
    # Even with the site's own signature.
    assert_refused(get(entrance, forged(url, name=name)), "no longer there")


def test_no_storage_is_opened_that_the_site_does_not_have(entrance, caplog):
    failed = Caller(entrance).tool("fetch", storage="elsewhere").result
    assert failed["isError"]
    assert "STORAGES has no 'elsewhere'" in caplog.text
    url = link(Caller(entrance))["uri"]
    assert_refused(get(entrance, forged(url, storage="elsewhere")), "no longer there")


def test_a_file_that_is_gone_is_said_to_be(entrance):
    failed = Caller(entrance).tool("fetch", file="absent.bin").result
    assert failed["content"][0]["text"] == "There is no such file."
    url = link(Caller(entrance))["uri"]
    storages["default"].delete("big.bin")
    assert_refused(get(entrance, url), "no longer there")


def user(entrance: Entrance, name: str) -> tuple[User, str]:
    """A user, and the cookie of a login at the site."""
    made = User.objects.create(username=name)
    client = Client()
    client.force_login(made)
    return made, f"sessionid={client.cookies['sessionid'].value}"


def url_of_mine(entrance: Entrance, name: str) -> str:
    caller = Caller(entrance).with_headers(X_User=name)
    return str(caller.tool("mine").result["structuredContent"]["url"])


def test_a_link_for_its_caller_is_for_nobody_else(entrance):
    _, anna = user(entrance, "anna")
    _, berta = user(entrance, "berta")
    url = url_of_mine(entrance, "anna")
    assert get(entrance, url, Cookie=anna).body == DATA
    assert_refused(get(entrance, url, Cookie=berta), "for somebody else", 403)
    sent_to_login = get(entrance, url)
    assert sent_to_login.status == 302
    login = f"/accounts/login/?next={urlsplit(url).path}"
    assert str(sent_to_login.header("Location")).replace("%3A", ":") == login
    # Who says that it is for everybody, or for himself, has no signature for it.
    for changes in ({"for_caller": False}, {"user": ""}):
        assert_refused(get(entrance, forged(url, key="guessed", **changes)))


def test_a_link_for_its_caller_needs_one(entrance):
    failed = Caller(entrance).tool("mine").result
    assert failed["isError"]
    assert "Only a user who has logged in" in failed["content"][0]["text"]


def test_a_site_that_knows_no_logins_is_told_so(entrance, settings, caplog):
    settings.MIDDLEWARE = []
    user(entrance, "anna")
    url = url_of_mine(entrance, "anna")
    assert get(entrance, url).status == 500
    assert "AuthenticationMiddleware finds out: add it to MIDDLEWARE" in caplog.text


def test_a_link_ends_with_the_access_of_its_user(entrance):
    anna, cookie = user(entrance, "anna")
    urls = [
        link(Caller(entrance).with_headers(X_User="anna"))["uri"],
        url_of_mine(entrance, "anna"),
    ]
    assert [get(entrance, url, Cookie=cookie).status for url in urls] == [200, 200]
    User.objects.filter(pk=anna.pk).update(is_active=False)
    assert [get(entrance, url, Cookie=cookie).status for url in urls] == [403, 302]
    anna.delete()
    assert_refused(get(entrance, urls[0]), "somebody else", 403)
    assert_refused(get(entrance, forged(urls[0], user="no number")), "somebody else", 403)


def test_behind_a_prefix_and_a_proxy(entrance, settings):
    entrance.root_path = "/app"
    settings.USE_X_FORWARDED_HOST = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.ALLOWED_HOSTS = ["shop.example.com", "testserver"]
    caller = Caller(entrance).with_headers(
        X_Forwarded_Host="shop.example.com", X_Forwarded_Proto="https"
    )
    url = link(caller)["uri"]
    assert url.startswith("https://shop.example.com/app/mcp/files/")
    assert get(entrance, url.replace("/app/mcp", "/mcp")).body == DATA


def test_where_a_proxy_takes_a_path_away(entrance, settings):
    settings.DJANGO_MCP = {
        **settings.DJANGO_MCP,
        "BASE_URL": ["https://www.example.com/shop", "https://testserver/desk"],
    }
    url = link(Caller(entrance))["uri"]
    assert url.startswith("https://testserver/desk/mcp/files/")
    assert get(entrance, url.replace("/desk", "")).body == DATA


def test_where_no_files_are_served_the_site_is_told(entrance, caplog):
    failed = Caller(entrance, path="/blue/plain").tool("fetch").result
    assert failed["isError"]
    assert "no files are served below /blue/plain" in caplog.text
    assert 'django_mcp.endpoint("mcp")' in caplog.text


def test_the_urls_of_the_default_server_serve_files(entrance, settings):
    settings.ROOT_URLCONF = urlconf(path("<slug:team>/", include("django_mcp.urls")))
    answer = get(entrance, "/blue/mcp/files/x")
    assert_refused(answer)


def test_a_link_is_good_under_the_path_of_one_team(entrance, settings):
    settings.ROOT_URLCONF = urlconf(
        path("<slug:team>/", include([endpoint("mcp", server=server, auth=caller_named)]))
    )
    url = link(Caller(entrance, path="/blue/mcp"))["uri"]
    assert get(entrance, url).body == DATA
    assert_refused(get(entrance, url.replace("/blue/", "/red/")))


def test_a_file_is_no_endpoint(entrance, settings):
    settings.DJANGO_MCP = {
        **settings.DJANGO_MCP,
        "AUTHORIZATION_SERVERS": ["https://id.example.com"],
    }
    assert reverse("archive") == "/mcp"
    posted = Caller(entrance, path="/mcp/files/x").call("tools/list")
    assert posted.status == 405
    document = "/.well-known/oauth-protected-resource/mcp"
    assert entrance.send("GET", document, []).status == 200
    assert entrance.send("GET", f"{document}/files/x", []).status == 404


class ByHeader(Partitions):
    """Tenants that a header names, and that share all tables."""

    def of_request(self, request: Any) -> str | None:
        return request.headers.get("X-Tenant") or None

    def all(self) -> list[str]:
        return ["acme", "globex"]

    def enter(self, partition: str) -> AbstractContextManager[None]:
        return nullcontext()


def test_a_link_is_good_for_one_tenant(entrance, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "PARTITION": f"{__name__}.ByHeader"}
    url = link(Caller(entrance).with_headers(X_Tenant="acme"))["uri"]
    assert signed_in(url).partition == "acme"
    assert get(entrance, url, **{"X-Tenant": "acme"}).body == DATA
    assert_refused(get(entrance, url, **{"X-Tenant": "globex"}))
    nowhere = get(entrance, url)
    assert nowhere.status == 404
    assert b"no MCP server at this host" in nowhere.body


class Guarded(MCPView):
    """A view of the site's own, which lets some requests in."""

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        if "X-Inside" not in request.headers:
            return HttpResponse("Outside", status=403)
        return super().dispatch(request, *args, **kwargs)


def test_what_a_site_asks_of_requests_to_its_view_holds_for_files(entrance, settings):
    pattern = endpoint("mcp", server=server)
    guarded = URLPattern(pattern.pattern, Guarded.as_view(server=server, auth=caller_named))
    settings.ROOT_URLCONF = urlconf(guarded)
    url = link(Caller(entrance).with_headers(X_Inside="1"))["uri"]
    assert get(entrance, url, **{"X-Inside": "1"}).body == DATA
    assert get(entrance, url).body == b"Outside"


def test_a_file_that_cannot_be_sought_is_sent_whole(entrance, settings):
    settings.STORAGES = {**settings.STORAGES, "tape": {"BACKEND": f"{__name__}.Tape"}}
    url = link(Caller(entrance), storage="tape")["uri"]
    answer = get(entrance, url, Range="bytes=1-2")
    assert (answer.status, answer.body) == (200, b"on tape")


def test_no_name_leads_out_of_a_storage_that_does_not_look(entrance, settings):
    settings.STORAGES = {**settings.STORAGES, "tape": {"BACKEND": f"{__name__}.Tape"}}
    url = link(Caller(entrance), storage="tape")["uri"]
    for name in TRAVERSALS:
        assert_refused(get(entrance, forged(url, name=name)), "no longer there")


class Tape(Storage):
    """Files that can be read from their beginning alone."""

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        tape = ContentFile(b"on tape", name=name)
        tape.seekable = lambda: False  # type: ignore[method-assign]
        return tape

    def size(self, name: str) -> int:
        return 7
