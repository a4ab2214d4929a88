"""Content blocks: how they are made, and what of them each revision gets."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from mcp_types import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    Icon,
    ImageContent,
    PromptMessage,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from django_mcp import MCPServer, content
from tests.server.support import LEGACY, MODERN, REVISIONS, call, client_of, serve_tool

PNG = b"\x89PNG\r\n\x1a\n"
ENCODED = base64.b64encode(PNG).decode()
NOTE = Annotations(audience=["user"], priority=0.5, last_modified="2026-07-28T12:00:00Z")


def test_a_string_becomes_a_block_of_text():
    assert content.text("a") == TextContent(text="a")
    assert content.text("a", annotations=NOTE).annotations == NOTE


@pytest.mark.parametrize("data", [PNG, bytearray(PNG), memoryview(PNG)], ids=type)
def test_an_image_from_bytes(data):
    assert content.image(data, mime_type="image/png") == ImageContent(
        data=ENCODED, mime_type="image/png"
    )


@pytest.mark.parametrize(
    ("name", "mime_type"),
    [("a.png", "image/png"), ("a.JPG", "image/jpeg"), ("a.svg", "image/svg+xml")],
)
def test_an_image_from_a_file(name, mime_type, tmp_path: Path):
    path = tmp_path / name
    path.write_bytes(PNG)
    for given in (path, str(path)):
        made = content.image(given, annotations=NOTE)
        assert (made.data, made.mime_type, made.annotations) == (ENCODED, mime_type, NOTE)
    assert content.image(path, mime_type="image/x-own").mime_type == "image/x-own"


def test_audio_from_bytes_and_from_a_file(tmp_path: Path):
    path = tmp_path / "a.wav"
    path.write_bytes(PNG)
    assert content.audio(PNG, mime_type="audio/wav") == AudioContent(
        data=ENCODED, mime_type="audio/wav"
    )
    assert content.audio(path).mime_type in ("audio/wav", "audio/x-wav")


def test_what_the_data_is_must_be_known(tmp_path: Path):
    unknown, pdf = tmp_path / "a.unknown", tmp_path / "a.pdf"
    unknown.write_bytes(PNG)
    pdf.write_bytes(PNG)
    with pytest.raises(ValueError, match='say what it is, for example mime_type="image/png"'):
        content.image(PNG)
    with pytest.raises(ValueError, match='for example mime_type="audio/wav"'):
        content.audio(unknown)
    with pytest.raises(ValueError, match="application/pdf is no image"):
        content.image(pdf)
    with pytest.raises(ValueError, match="image/png is no audio"):
        content.audio(PNG, mime_type="image/png")
    with pytest.raises(FileNotFoundError):
        content.image(tmp_path / "nowhere.png")


def test_a_link_to_a_resource():
    assert content.resource_link("x://1") == ResourceLink(uri="x://1", name="x://1")
    made = content.resource_link(
        "x://1", name="One", title="The one", mime_type="text/plain", size=3, annotations=NOTE
    )
    assert made.model_dump(by_alias=True, exclude_none=True) == {
        "type": "resource_link",
        "uri": "x://1",
        "name": "One",
        "title": "The one",
        "mimeType": "text/plain",
        "size": 3,
        "annotations": NOTE.model_dump(by_alias=True, exclude_none=True),
    }


def test_an_embedded_resource():
    assert content.embedded("x://1", "text").resource == TextResourceContents(
        uri="x://1", text="text", mime_type="text/plain"
    )
    assert content.embedded("x://1", PNG).resource == BlobResourceContents(
        uri="x://1", blob=ENCODED, mime_type="application/octet-stream"
    )
    made = content.embedded("x://1", "{}", mime_type="application/json")
    assert made.resource.mime_type == "application/json"
    assert content.contents("x://1", memoryview(PNG), mime_type="image/png").blob == ENCODED


def test_messages_of_prompts():
    image = content.image(PNG, mime_type="image/png")
    assert content.user("a") == PromptMessage(role="user", content=TextContent(text="a"))
    assert content.assistant(image) == PromptMessage(role="assistant", content=image)


BLOCKS = [
    content.text("text", annotations=NOTE),
    content.image(PNG, mime_type="image/png", annotations=NOTE),
    content.audio(PNG, mime_type="audio/wav"),
    content.resource_link(
        "x://1", name="One", title="The one", annotations=NOTE, icons=[Icon(src="x:i")]
    ),
    content.embedded("x://1", "text"),
    content.embedded("x://1", PNG, mime_type="image/png"),
    TextContent(text="meta", _meta={"example.com/a": None}),
    EmbeddedResource(
        resource=TextResourceContents(uri="x://1", text="", _meta={"example.com/a": 1}),
        annotations=NOTE,
    ),
]


def sent(blocks: list[Any], revision: str, *, ready: bool = False) -> list[dict[str, Any]]:
    client = client_of(
        serve_tool(lambda: CallToolResult(content=blocks) if ready else blocks), revision
    )
    return client.tool("it").assert_ok().result["content"]


@pytest.mark.django_db
@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("revision", REVISIONS)
def test_each_revision_gets_what_it_knows(revision, ready):
    text, image, audio, link, embedded, blob, meta, embedded_meta = sent(
        BLOCKS, revision, ready=ready
    )
    oldest = revision == LEGACY[0]
    note = {"audience": ["user"], "priority": 0.5}
    if not oldest:
        note["lastModified"] = "2026-07-28T12:00:00Z"
    assert text == {"type": "text", "text": "text", "annotations": note}
    assert image == {
        "type": "image",
        "data": ENCODED,
        "mimeType": "image/png",
        "annotations": note,
    }
    assert audio == {"type": "audio", "data": ENCODED, "mimeType": "audio/wav"}
    assert embedded["resource"] == {"uri": "x://1", "text": "text", "mimeType": "text/plain"}
    assert blob["resource"] == {"uri": "x://1", "blob": ENCODED, "mimeType": "image/png"}
    assert ("_meta" in meta) is not oldest
    assert embedded_meta["annotations"] == note
    assert ("_meta" in embedded_meta["resource"]) is not oldest
    if oldest:
        assert link == {"type": "text", "text": "The one: x://1"}
        return
    assert (link["type"], link["uri"], link["title"]) == ("resource_link", "x://1", "The one")
    assert ("icons" in link) is (revision in (LEGACY[2], MODERN))


def test_a_link_without_a_title_is_named_by_its_name():
    server = serve_tool(lambda: content.resource_link("x://1", name="One"))
    assert client_of(server).tool("it").result["content"][0]["name"] == "One"


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_prompts_carry_the_same_blocks(revision):
    server = MCPServer("test")
    server.prompt(name="it")(lambda: BLOCKS)
    messages = client_of(server, revision).prompt("it").result["messages"]
    assert [message["content"] for message in messages] == sent(BLOCKS, revision)
    assert {message["role"] for message in messages} == {"user"}


def test_text_may_stand_among_blocks():
    assert sent(["text", content.text("block")], MODERN) == [
        {"type": "text", "text": "text"},
        {"type": "text", "text": "block"},
    ]


def test_other_values_may_not():
    answer = call(lambda: [content.text("block"), 5])
    answer.assert_failed("int among content blocks; wrap it as text")


DESCRIBED = {
    "tools/list": ({"title", "outputSchema", "_meta"}, {"icons"}),
    "prompts/list": ({"title", "_meta"}, {"icons"}),
    "resources/list": ({"title", "_meta"}, {"icons"}),
    "resources/templates/list": ({"title", "_meta"}, {"icons"}),
}


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", DESCRIBED)
def test_lists_carry_the_fields_that_a_revision_knows(method, revision):
    server = MCPServer("test")
    options: dict[str, Any] = {
        "title": "Title",
        "meta": {"example.com/a": 1},
        "icons": [Icon(src="x:i", theme="dark")],
        "description": "Description",
    }

    def it(name: str = "") -> int:
        return 5

    server.tool(**options)(it)
    server.prompt(**options)(it)
    server.resource("x://y", annotations=NOTE, size=3, **options)(it)
    server.resource("x://{name}", annotations=NOTE, **options)(it)
    (items,) = (
        value
        for value in client_of(server, revision).request(method).result.values()
        if isinstance(value, list)
    )
    second, third = DESCRIBED[method]
    age = REVISIONS.index(revision)
    assert items[0].keys() & (second | third) == (second if age >= 1 else set()) | (
        third if age >= 2 else set()
    )
    assert items[0]["description"] == "Description"
    if "resources" in method:
        assert ("lastModified" in items[0]["annotations"]) is (age >= 1)
        assert items[0]["mimeType"] == "application/json"
    if age >= 2:
        assert items[0]["icons"] == [{"src": "x:i", "theme": "dark"}]
    if method == "prompts/list":
        assert items[0]["arguments"] == [{"name": "name", "required": False}]
