"""What the official clients see, through every door, by value."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.support.caller import Caller
from tests.support.entrances import ServerEntrance
from tests.support.servers import RunningServer

from .peers import Peer, Story

COVER = b"\x89PNG\r\n\x1a\n cover"

CRIME = {"isbn": "0140449132", "title": "Crime and Punishment", "year": 1866}
KARAMAZOV = {"isbn": "0140449248", "title": "The Brothers Karamazov", "year": 1880}
TEMPS = {"isbn": "0199535671", "title": "À la recherche du temps perdu", "year": 1913}


def named(things: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {thing["name"]: thing for thing in things}


def only_text(result: dict[str, Any]) -> str:
    (block,) = result["content"]
    assert block["type"] == "text"
    text: str = block["text"]
    return text


def test_connects_in_its_era(story: Story, peer: Peer) -> None:
    connected = story["connected"]

    assert connected["protocolVersion"] == peer.revision
    assert connected["serverInfo"]["name"] == "bookshop"
    assert connected["serverInfo"]["version"] == "2.5"
    assert connected["instructions"] == "Find a book before you lend it."


def test_lists_tools(story: Story) -> None:
    tools = story["tools"]["tools"]

    assert [tool["name"] for tool in tools] == [
        *["describe_book", "find_books", "greet", "lend", "show_cover", "stock", "who_asks"]
    ]
    find_books = named(tools)["find_books"]
    assert find_books["title"] == "Find books"
    assert find_books["description"] == "Find books by words of their title."
    assert find_books["annotations"]["readOnlyHint"] is True
    assert find_books["inputSchema"]["required"] == ["words"]
    limit = find_books["inputSchema"]["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 50, 10)


def test_lists_output_schemas_that_its_revision_allows(story: Story, peer: Peer) -> None:
    tools = named(story["tools"]["tools"])

    assert tools["describe_book"]["outputSchema"]["type"] == "object"
    assert tools["find_books"]["outputSchema"]["type"] == ("array" if peer.modern else "object")
    assert "outputSchema" not in tools["greet"]


def test_lists_resources_and_templates(story: Story) -> None:
    resources = named(story["resources"]["resources"])
    (template,) = story["templates"]["resourceTemplates"]

    assert {name: r["uri"] for name, r in resources.items()} == {
        "catalogue": "book://catalogue",
        "cover": "book://cover",
    }
    assert resources["catalogue"]["title"] == "Catalogue"
    assert template["uriTemplate"] == "book://{isbn}"
    assert template["mimeType"] == "application/json"


def test_lists_prompts(story: Story) -> None:
    (prompt,) = story["prompts"]["prompts"]

    assert (prompt["name"], prompt["title"]) == ("recommend", "Recommend")
    arguments = {a["name"]: a.get("required", False) for a in prompt["arguments"]}
    assert arguments == {"genre": True, "length": False}


def test_calls_a_tool_for_text(story: Story) -> None:
    assert only_text(story["greeting"]) == "Hello Ada"
    assert not story["greeting"].get("isError")
    assert "structuredContent" not in story["greeting"]


def test_calls_tools_for_structured_content(story: Story, peer: Peer) -> None:
    described, found = story["described"], story["found"]

    assert described["structuredContent"] == CRIME
    assert json.loads(only_text(described)) == CRIME
    assert found["structuredContent"] == ([TEMPS] if peer.modern else {"result": [TEMPS]})


def test_calls_a_tool_for_several_blocks(story: Story) -> None:
    title, cover, link = story["shown"]["content"]

    assert title["text"] == "Crime and Punishment"
    assert (cover["type"], cover["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(cover["data"]) == COVER
    assert (link["type"], link["uri"]) == ("resource_link", "book://0140449132")


def test_mirrors_an_argument_in_a_header(story: Story, peer: Peer) -> None:
    sent = [request["sent"].get("mcp-param-branch") for request in story["traffic"]]

    assert story["stocked"]["structuredContent"] == (7 if peer.modern else {"result": 7})
    expected = "=?base64?WsO8cmljaA==?=" if peer.modern else None
    assert [value for value in sent if value] == ([expected] if expected else [])


def test_tells_the_tool_who_asks(story: Story, peer: Peer) -> None:
    assert only_text(story["asked"]) == f"walker speaks {peer.revision}"


def test_reads_the_refusal_of_a_tool(story: Story) -> None:
    assert story["refused"]["isError"] is True
    assert only_text(story["refused"]) == "0140449132 is already lent."


def test_reads_which_argument_is_wrong(story: Story) -> None:
    assert story["misspelt"]["isError"] is True
    assert "nmae" in only_text(story["misspelt"])


def test_gets_an_error_for_an_unknown_tool(story: Story) -> None:
    assert story["unknown tool"]["error"]["code"] == -32602


def test_reads_resources(story: Story) -> None:
    (catalogue,) = story["catalogue"]["contents"]
    (cover,) = story["cover"]["contents"]
    (record,) = story["record"]["contents"]

    assert catalogue["text"].splitlines()[2] == "À la recherche du temps perdu"
    assert catalogue["mimeType"] == "text/plain"
    assert base64.b64decode(cover["blob"]) == COVER
    assert (record["uri"], record["mimeType"]) == ("book://0140449248", "application/json")
    assert json.loads(record["text"]) == KARAMAZOV


def test_gets_an_error_for_an_unknown_resource(story: Story, peer: Peer) -> None:
    error = story["unknown book"]["error"]

    assert error["code"] == peer.not_found
    assert error["data"]["uri"] == "book://0000000000"


def test_gets_a_prompt(story: Story) -> None:
    (message,) = story["recommendation"]["messages"]

    assert message["role"] == "user"
    assert message["content"]["text"] == "Recommend a short book of the genre novel."


def test_a_client_completes_arguments(story: Story) -> None:
    assert story["genres"]["completion"]["values"] == ["novel", "novella"]
    assert story["numbers"]["completion"]["values"] == ["0140449132", "0140449248"]


def test_ends_its_session(story: Story, peer: Peer, server: RunningServer) -> None:
    sessions = {request["session"] for request in story["traffic"]} - {None}
    deletions = [r["status"] for r in story["traffic"] if r["method"] == "DELETE"]

    if peer.modern:
        assert (sessions, deletions) == (set(), [])
        return
    (session,) = sessions
    assert deletions == [204]
    caller = Caller(ServerEntrance(server.origin))
    assert caller.in_session(session).call("tools/list").status == 404


def test_meets_no_server_fault(story: Story) -> None:
    assert [r for r in story["traffic"] if r["status"] >= 500] == []
