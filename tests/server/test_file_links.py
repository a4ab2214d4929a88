"""What a ``FileLink`` is made of, and what becomes of it in a result."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile, File
from django.core.files.storage import InMemoryStorage, Storage, default_storage, storages
from django.db.models import FileField
from django.db.models.fields.files import FieldFile

from django_mcp import FileLink, MCPServer, ToolError
from django_mcp.server.files import MAX_FILE_BYTES
from tests.server.support import client_of, describe_tool, serve_tool

SIGNED = "https://bucket.s3.amazonaws.com/{}?X-Amz-Expires={}&X-Amz-Signature=abc"


class Signing(InMemoryStorage):
    """Signs as storages on S3 do."""

    def url(self, name: str | None, expire: int | None = None) -> str:
        return SIGNED.format(name, expire)


class SigningForItsOwnTime(InMemoryStorage):
    """Signs as that on Google's does: how long is one of its settings."""

    def url(self, name: str | None) -> str:
        return f"https://storage.googleapis.com/b/{name}?X-Goog-Signature=abc"


class Open(InMemoryStorage):
    """Has URLs that anybody can guess, as S3 behind a domain of one's own."""

    def url(self, name: str | None, expire: int | None = None) -> str:
        return f"https://cdn.example.com/{name}"


class Mute(Storage):
    """Says next to nothing."""

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        return ContentFile(b"x", name=name)


@pytest.fixture(autouse=True)
def in_memory(settings):
    settings.STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
        "signing": {"BACKEND": f"{__name__}.Signing"},
        "google": {"BACKEND": f"{__name__}.SigningForItsOwnTime"},
        "open": {"BACKEND": f"{__name__}.Open"},
        "mute": {"BACKEND": f"{__name__}.Mute"},
    }
    for name in ("default", "signing", "google", "open"):
        storages[name].save("a/b.csv", ContentFile(b"x,y\n"))


def of_field(storage: Any, name: str | None = "a/b.csv") -> FieldFile:
    return FieldFile(None, FileField(storage=storage, name="file"), name)  # type: ignore[arg-type]


def blocks(make: Callable[[], Any]) -> list[dict[str, Any]]:
    server = serve_tool(lambda: make())
    found: list[dict[str, Any]] = client_of(server).tool("it").assert_ok().result["content"]
    return found


def failure(make: Callable[[], Any]) -> str:
    return client_of(serve_tool(lambda: make())).tool("it").assert_failed().text


OURS = "http://testserver/mcp/files/"


@pytest.mark.parametrize(
    "storage", [default_storage, lambda: storages["default"]], ids=["proxy", "callable"]
)
def test_the_file_of_a_field_is_linked(storage):
    (block,) = blocks(lambda: FileLink(of_field(storage), title="Sales", description="Of May"))
    assert block.pop("uri").startswith(OURS)
    assert block == {
        "type": "resource_link",
        "name": "b.csv",
        "title": "Sales",
        "description": "Of May",
        "mimeType": "text/csv",
        "size": 4,
    }


def test_the_site_says_what_it_is_called_and_what_it_is():
    (block,) = blocks(lambda: FileLink("a/b.csv", filename="May", mime_type="text/x-sales"))
    assert (block["name"], block["mimeType"]) == ("May", "text/x-sales")


def test_links_stand_among_blocks():
    found = blocks(lambda: ["Here it is:", FileLink("a/b.csv"), FileLink("a/b.csv")])
    assert [block["type"] for block in found] == ["text", "resource_link", "resource_link"]


@pytest.mark.parametrize("storage", ["signing", ""])
def test_a_storage_that_signs_is_asked_itself(storage):
    def make() -> FileLink:
        file = "a/b.csv" if storage else of_field(storages["signing"])
        return FileLink(file, storage=storage, seconds=90)

    (block,) = blocks(make)
    assert block["uri"] == SIGNED.format("a/b.csv", 90)
    assert block["size"] == 4


def test_a_storage_may_sign_for_a_time_of_its_own():
    (block,) = blocks(lambda: FileLink("a/b.csv", storage="google"))
    assert block["uri"].startswith("https://storage.googleapis.com/")


def test_a_url_that_anybody_can_guess_is_not_sent():
    (block,) = blocks(lambda: FileLink("a/b.csv", storage="open"))
    assert block["uri"].startswith(OURS)


def test_what_is_for_its_caller_is_not_given_away_by_the_storage(django_user_model):
    server = serve_tool(lambda: FileLink("a/b.csv", storage="signing", for_caller=True))
    user = django_user_model(pk=1, username="anna")
    (block,) = client_of(server).as_user(user).tool("it").result["content"]
    assert block["uri"].startswith(OURS)


def test_a_storage_that_knows_no_size_gets_a_link_without():
    (block,) = blocks(lambda: FileLink("a.csv", storage="mute", inline_bytes=10))
    assert block["uri"].startswith(OURS)
    assert "size" not in block


@pytest.mark.parametrize(("most", "kind"), [(4, "resource"), (3, "resource_link")])
def test_what_is_small_is_sent_itself(most, kind):
    (block,) = blocks(lambda: FileLink("a/b.csv", inline_bytes=most, mime_type="text/x-sales"))
    assert block["type"] == kind
    if kind == "resource":
        assert block["resource"]["text"] == "x,y\n"
        assert block["resource"]["mimeType"] == "text/x-sales"
        assert block["resource"]["uri"] == "attachment:///b.csv"


def test_what_no_result_holds_is_linked_whatever_the_tool_says():
    storages["default"].save("big.bin", ContentFile(b"x" * (MAX_FILE_BYTES + 1)))
    (block,) = blocks(lambda: FileLink("big.bin", inline_bytes=10**9))
    assert block["type"] == "resource_link"


def test_a_picture_that_is_small_is_an_image():
    storages["default"].save("cat.png", ContentFile(b"\x89PNG"))
    (block,) = blocks(lambda: FileLink("cat.png", inline_bytes=10))
    assert (block["type"], base64.b64decode(block["data"])) == ("image", b"\x89PNG")


def linked() -> FileLink:
    return FileLink("a/b.csv")


def maybe_linked() -> FileLink | None:
    return FileLink("a/b.csv")


def several() -> list[FileLink]:
    return [FileLink("a/b.csv")]


@pytest.mark.parametrize("function", [linked, maybe_linked, several])
def test_tools_that_are_annotated_so_have_no_structured_output(function):
    assert "outputSchema" not in describe_tool(function)
    (block,) = client_of(serve_tool(function)).tool("it").result["content"]
    assert block["type"] == "resource_link"


def test_a_prompt_may_hold_a_link():
    server = MCPServer("test")
    server.prompt(name="it")(lambda: ["Sum this up:", FileLink("a/b.csv")])
    messages = client_of(server).prompt("it").result["messages"]
    assert [each["content"]["type"] for each in messages] == ["text", "resource_link"]


@pytest.mark.parametrize("name", ["../a.csv", "/a.csv", "absent.csv", ""])
def test_a_name_that_leads_nowhere_is_said_to_the_model(name):
    assert failure(lambda: FileLink(name)) in ("There is no such file.", "There is no file.")


def test_a_field_without_a_file_says_so():
    assert failure(lambda: FileLink(of_field(default_storage, None))) == "There is no file."


def test_a_link_within_a_structure_is_refused_with_the_cure(caplog):
    server = serve_tool(lambda: {"file": FileLink("a/b.csv")})
    client_of(server).tool("it").assert_failed("FileLink(...).url(ctx)")


def test_a_link_as_a_resource_is_refused():
    server = MCPServer("test")
    server.resource("file://x")(lambda: FileLink("a/b.csv"))
    assert client_of(server).read("file://x").error["code"] == -32603


@pytest.mark.parametrize(
    ("make", "kind", "cure"),
    [
        (lambda: FileLink("a/b.csv", seconds=0), ValueError, "more than 0, not 0"),
        (lambda: FileLink("a/b.csv", storage="no"), ImproperlyConfigured, "It has: 'default'"),
        (lambda: FileLink(ContentFile(b"")), TypeError, r'storages\["default"\].save'),
        (lambda: FileLink(b"a/b.csv"), TypeError, "not of bytes"),
        (lambda: FileLink("../x"), ToolError, "There is no such file"),
    ],
)
def test_what_cannot_be_linked_is_refused_with_the_cure(make, kind, cure):
    with pytest.raises(kind, match=cure):
        make()


def test_a_storage_that_the_site_has_not_named_is_refused_with_the_cure(caplog):
    storage = InMemoryStorage()
    storage.save("a/b.csv", ContentFile(b"x"))
    assert failure(lambda: FileLink(of_field(storage))).startswith("The tool failed.")
    assert "Add it there, and give the field" in caplog.text
    (block,) = blocks(lambda: FileLink(of_field(storage), storage="default"))
    assert block["size"] == 4  # of the file that will be fetched


@pytest.mark.parametrize(
    "name", ["a/b.csv/c", f"{'x' * 300}.csv", "a\x00b", "../b.csv", "/b.csv", "a"]
)
def test_a_name_that_a_client_has_made_up_is_no_failure(settings, tmp_path, name):
    on_disk = "django.core.files.storage.FileSystemStorage"
    options = {"location": str(tmp_path)}
    settings.STORAGES = {"default": {"BACKEND": on_disk, "OPTIONS": options}}
    storages["default"].save("a/b.csv", ContentFile(b"x,y\n"))
    server = serve_tool(lambda: FileLink(name, inline_bytes=MAX_FILE_BYTES))
    client_of(server).tool("it").assert_failed("There is no such file.")
