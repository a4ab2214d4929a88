"""``Upload``: files as arguments."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Annotated, Any

import pytest
from django.core.files.uploadedfile import UploadedFile
from PIL import Image

from django_mcp import RegistrationError, Upload
from django_mcp.server.uploads import MAX_UPLOAD_BYTES

from .support import REVISIONS, client_of, input_schema, serve_tool

pytestmark = pytest.mark.django_db


def text_of(file: Annotated[UploadedFile, Upload(max_bytes=9)]) -> str:
    """Read a file."""
    return f"{file.name} {file.content_type} {file.size} {file.read()!r}"


async def atext_of(file: Annotated[UploadedFile, Upload(max_bytes=9)]) -> str:
    """Read a file."""
    return f"{file.name} {file.content_type} {file.size} {file.read()!r}"


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("function", [text_of, atext_of])
def test_a_file_comes_in_as_base64(function, revision):
    client = client_of(serve_tool(function), revision)
    sent = {"name": "a.txt", "data": base64_of(b"Hello")}
    assert client.tool("it", file=sent).assert_ok().text == "a.txt text/plain 5 b'Hello'"
    sent["mimeType"] = "text/markdown"
    assert client.tool("it", file=sent).text == "a.txt text/markdown 5 b'Hello'"


def test_a_data_url_is_read_as_well():
    sent = {"name": "a", "data": f"data:text/plain;base64,{base64_of(b'Hi')}"}
    answer = client_of(serve_tool(text_of)).tool("it", file=sent)
    assert answer.text == "a application/octet-stream 2 b'Hi'"


def test_clients_are_told_what_to_send():
    assert input_schema(text_of)["properties"]["file"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 255},
            "data": {"type": "string", "contentEncoding": "base64"},
            "mimeType": {"type": "string"},
        },
        "required": ["name", "data"],
    }


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"name": "a", "data": "no base64!"}, "the bytes of a file as base64"),
        ({"name": "a", "data": "YQ"}, "the bytes of a file as base64"),
        ({"name": "a", "data": "ä"}, "the bytes of a file as base64"),
        ({"name": "a", "data": base64_of(b"0123456789")}, "a file of 9 bytes at most"),
        ({"name": "a", "data": base64_of(b"0" * 10_000)}, "a file of 9 bytes at most"),
        ({"name": "", "data": ""}, "a file with a name"),
        ({"name": "..", "data": ""}, "a file with a name"),
        ({"name": "a/", "data": ""}, "a file with a name"),
        ({"name": "\x00", "data": ""}, "a file with a name"),
        ({"name": "a" * 256, "data": ""}, "at most 255 characters"),
        ({"name": "a"}, "file.data"),
        ("a.txt", "file: "),
    ],
)
def test_what_is_no_file_is_refused(sent, said):
    client_of(serve_tool(text_of)).tool("it", file=sent).assert_failed(said)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ada\\a.txt", "a.txt"),
        ("/a\x00b\n.txt", "ab.txt"),
        ("ünï.txt", "ünï.txt"),
        ("a b.txt", "a b.txt"),
    ],
)
def test_a_name_is_one_of_a_file_and_of_no_directory(name, kept):
    answer = client_of(serve_tool(text_of)).tool("it", file={"name": name, "data": ""})
    assert answer.assert_ok().text.startswith(f"{kept} ")


def test_a_file_may_be_of_some_types_alone():
    def it(file: Annotated[UploadedFile, Upload(types=["image/*", "application/pdf"])]) -> str:
        return str(file.content_type)

    client = client_of(serve_tool(it))
    for name in ("a.png", "a.pdf"):
        client.tool("it", file={"name": name, "data": ""}).assert_ok()
    answer = client.tool("it", file={"name": "a.exe", "data": ""})
    answer.assert_failed("a file of type image/*, application/pdf, not application/")
    # It goes by what the client says.
    client.tool("it", file={"name": "a.exe", "data": "", "mimeType": "image/png"}).assert_ok()


def picture(kind: str = "PNG") -> bytes:
    data = BytesIO()
    Image.new("RGB", (3, 2)).save(data, kind)
    return data.getvalue()


def test_a_picture_is_one_that_pillow_knows():
    def it(photo: Annotated[UploadedFile, Upload(image=True)]) -> str:
        assert photo.read(4) == picture()[:4]
        return f"{photo.content_type} {photo.image.size}"

    client = client_of(serve_tool(it))
    sent = {"name": "a.png", "data": base64_of(picture()), "mimeType": "text/html"}
    assert client.tool("it", photo=sent).assert_ok().text == "image/png (3, 2)"
    for data in (b"", b"GIF89a", picture()[:40]):
        sent = {"name": "a.png", "data": base64_of(data)}
        client.tool("it", photo=sent).assert_failed("photo: ")


def test_there_may_be_none_or_several():
    def it(
        files: list[Annotated[UploadedFile, Upload()]],
        more: Annotated[UploadedFile, Upload()] | None = None,
    ) -> list[Any]:
        return [each.name for each in files] + [more]

    one = {"name": "a", "data": ""}
    client_of(serve_tool(it)).tool("it", files=[one, one]).assert_structured(["a", "a", None])


def test_a_megabyte_is_taken_and_no_more():
    def it(file: Annotated[UploadedFile, Upload()]) -> int:
        return int(file.size)

    client = client_of(serve_tool(it))
    data = base64_of(b"0" * MAX_UPLOAD_BYTES)
    client.tool("it", file={"name": "a", "data": data}).assert_structured(MAX_UPLOAD_BYTES)
    data = base64_of(b"0" * (MAX_UPLOAD_BYTES + 1))
    answer = client.tool("it", file={"name": "a", "data": data})
    answer.assert_failed("a file of 1,048,576 bytes at most")
    assert len(answer.text) < 1000


def test_what_makes_no_sense_is_refused():
    def it(file: Annotated[bytes, Upload()]) -> str:
        return ""

    with pytest.raises(RegistrationError, match="Upload is for a parameter that takes"):
        serve_tool(it)
    with pytest.raises(RegistrationError, match="takes a list"):
        Upload(types="image/png")


def test_pictures_need_pillow(monkeypatch):
    monkeypatch.setattr("django_mcp.server.uploads.find_spec", lambda name: None)
    with pytest.raises(RegistrationError, match="needs Pillow"):
        Upload(image=True)
