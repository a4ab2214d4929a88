"""What Django has as files goes out as content."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import pytest
from django.core.files.base import ContentFile, File
from django.core.files.storage import InMemoryStorage
from django.core.signals import request_finished
from django.db.models import FileField
from django.db.models.fields.files import FieldFile
from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    HttpResponseNotFound,
    StreamingHttpResponse,
)
from django.shortcuts import render
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from PIL import Image

from django_mcp import MCPServer, content
from django_mcp.server.files import MAX_FILE_BYTES
from tests.server.support import client_of, describe_tool, serve_tool

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)


def stored(name: str, data: bytes) -> FieldFile:
    """What a FileField gives of a row."""
    storage = InMemoryStorage()
    name = storage.save(name, ContentFile(data))
    return FieldFile(None, FileField(storage=storage, name="file"), name)  # type: ignore[arg-type]


def blocks(value: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client_of(serve_tool(lambda: value)).tool("it").result["content"]
    return found


def failure(value: Any) -> str:
    return client_of(serve_tool(lambda: value)).tool("it").assert_failed().text


def test_a_picture_of_a_field_is_an_image():
    (block,) = blocks(stored("photos/cat.png", PNG))
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(block["data"]) == PNG


def test_sound_is_audio():
    (block,) = blocks(stored("memo.wav", b"RIFF"))
    assert (block["type"], base64.b64decode(block["data"])) == ("audio", b"RIFF")


def test_a_text_is_embedded_as_text():
    (block,) = blocks(stored("logs/día.csv", "a,ü\n".encode()))
    assert block["resource"] == {
        "uri": "attachment:///d%C3%ADa.csv",
        "mimeType": "text/csv",
        "text": "a,ü\n",
    }


@pytest.mark.parametrize(("name", "data"), [("a.pdf", b"%PDF"), ("a.txt", b"\xff"), ("a", b"x")])
def test_what_is_no_text_is_embedded_as_it_is(name, data):
    (block,) = blocks(stored(name, data))
    assert base64.b64decode(block["resource"]["blob"]) == data
    assert "text" not in block["resource"]


def test_a_file_without_a_name_in_a_storage_is_sent_too():
    (block,) = blocks(ContentFile("naïve", name="note.txt"))
    assert block["resource"]["text"] == "naïve"


def test_files_may_stand_among_blocks():
    found = blocks(
        ["Two pictures", stored("a.png", PNG), content.image(PNG, mime_type="image/png")]
    )
    assert [block["type"] for block in found] == ["text", "image", "image"]
    assert [block["type"] for block in blocks([stored("a.png", PNG)] * 2)] == ["image", "image"]


def test_a_field_without_a_file_says_so():
    field = FileField(name="file")
    assert failure(FieldFile(None, field, None)) == "There is no file."  # type: ignore[arg-type]


def test_a_file_that_is_too_large_is_refused_before_all_of_it_was_read():
    class Endless(BytesIO):
        taken = 0

        def read(self, size: int | None = -1) -> bytes:
            assert size is not None
            assert size > 0
            Endless.taken += size
            return b"x" * size

    endless = File(Endless(), name="big.bin")
    endless.size = 2**40
    assert "big.bin is larger than 1,048,576 bytes" in failure(endless)
    assert Endless.taken < 2 * MAX_FILE_BYTES


def test_a_response_of_a_view_is_what_it_says():
    (page,) = blocks(HttpResponse("<p>Grüße</p>"))
    assert page == {"type": "text", "text": "<p>Grüße</p>"}
    (latin,) = blocks(
        HttpResponse("Grüße".encode("latin-1"), content_type="text/plain; charset=latin-1")
    )
    assert latin["text"] == "Grüße"
    (picture,) = blocks(HttpResponse(PNG, content_type="image/png"))
    assert (picture["type"], base64.b64decode(picture["data"])) == ("image", PNG)


def test_a_file_response_has_the_name_of_its_file():
    (block,) = blocks(FileResponse(BytesIO(b"a,b"), filename="orders.csv"))
    assert block["resource"]["uri"] == "attachment:///orders.csv"
    assert block["resource"]["text"] == "a,b"


def test_a_file_that_has_a_number_for_a_name_has_none(tmp_path):
    (tmp_path / "scan.bin").write_bytes(b"\x00")
    number = os.open(tmp_path / "scan.bin", os.O_RDONLY)
    (block,) = blocks(FileResponse(os.fdopen(number, "rb")))
    assert block["resource"]["uri"] == "attachment:///file"


def test_a_response_is_closed():
    closed: list[str] = []

    class Noting(BytesIO):
        def close(self) -> None:
            closed.append("yes")
            super().close()

    blocks(FileResponse(Noting(b"a"), filename="a.txt"))
    assert closed == ["yes"]


def test_the_request_goes_on_when_a_response_was_read(db):
    """Django takes a response that is closed for the end of the request."""
    ended: list[Any] = []

    def note(**given: Any) -> None:
        ended.append(given)

    request_finished.connect(note)
    try:
        runner = MCPServer("test")

        @runner.tool
        def it() -> HttpResponse:
            return HttpResponse("x")

        client_of(runner).tool("it").assert_contains("x")
    finally:
        request_finished.disconnect(note)
    assert ended == []


def test_a_streaming_response_is_read():
    def pieces() -> Iterator[bytes]:
        yield b"a"
        yield b"b"

    (block,) = blocks(StreamingHttpResponse(pieces(), content_type="text/plain"))
    assert block["text"] == "ab"


def test_an_error_response_is_a_failure():
    assert failure(HttpResponseNotFound("No such order.", content_type="text/plain")) == (
        "No such order."
    )
    assert failure(HttpResponseNotFound("<html>")) == "404 Not Found"


def test_a_picture_of_pillow_is_an_image():
    (block,) = blocks(Image.new("RGB", (2, 3), "red"))
    assert block["mimeType"] == "image/png"
    assert Image.open(BytesIO(base64.b64decode(block["data"]))).size == (2, 3)
    jpeg = BytesIO()
    Image.new("RGB", (2, 3)).save(jpeg, "JPEG")
    (block,) = blocks(Image.open(jpeg))
    assert block["mimeType"] == "image/jpeg"


def picture() -> Image.Image:
    return Image.new("RGB", (1, 1))


def field_file() -> FieldFile | None:
    return None


def several() -> list[FieldFile]:
    return [stored("a.png", PNG)]


def response() -> FileResponse:
    return FileResponse(BytesIO(b"x"), filename="x.bin")


@pytest.mark.parametrize("function", [picture, field_file, several, response])
def test_tools_that_are_annotated_so_have_no_structured_output(function: Callable[..., Any]):
    assert "outputSchema" not in describe_tool(function)
    client_of(serve_tool(function)).tool("it").assert_ok()


def test_a_resource_may_be_a_file():
    server = MCPServer("test")
    server.resource("photo://cat")(lambda: stored("cat.png", PNG))
    server.resource("log://today", mime_type="text/x-log")(lambda: stored("today.txt", b"x"))

    @server.resource("photo://dog")
    def dog() -> FieldFile:
        return stored("dog.png", PNG)

    client = client_of(server)
    for name in ("cat", "dog"):
        (found,) = client.read(f"photo://{name}").result["contents"]
        assert found["mimeType"] == "image/png"
        assert base64.b64decode(found["blob"]) == PNG
    (log,) = client.read("log://today").result["contents"]
    assert log == {"uri": "log://today", "mimeType": "text/x-log", "text": "x"}


@pytest.fixture
def templates(settings):
    pages = {"reply.md": "**{{ word }}**\n", "page.html": "<b>{{ word }}</b>"}
    loader = ("django.template.loaders.locmem.Loader", pages)
    settings.TEMPLATES = [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {"loaders": [loader]},
        }
    ]


def rendered() -> str:
    return render_to_string("reply.md", {"word": "Yes"})


def unrendered() -> TemplateResponse:
    return TemplateResponse(None, "reply.md", {"word": "Yes"}, content_type="text/markdown")


async def arendered() -> TemplateResponse:
    return TemplateResponse(
        None, "reply.md", {"word": "Yes"}, content_type="text/markdown"
    ).render()


def of_request(request: HttpRequest) -> HttpResponse:
    return render(request, "reply.md", {"word": "Yes"}, content_type="text/markdown")


@pytest.mark.parametrize("function", [rendered, unrendered, arendered, of_request])
def test_a_template_that_is_rendered_is_text(function, templates):
    (block,) = client_of(serve_tool(function)).tool("it").assert_ok().result["content"]
    assert block == {"type": "text", "text": "**Yes**\n"}


def test_a_resource_may_be_a_template(templates):
    server = MCPServer("test")
    server.resource("reply://a")(unrendered)
    server.resource("reply://b", mime_type="text/markdown")(rendered)
    for name in ("a", "b"):
        (found,) = client_of(server).read(f"reply://{name}").result["contents"]
        assert found == {
            "uri": f"reply://{name}",
            "mimeType": "text/markdown",
            "text": "**Yes**\n",
        }


def test_what_a_template_does_wrong_is_a_bug_of_the_site(templates):
    assert failure(TemplateResponse(None, "nowhere.md")).startswith("The tool failed.")
