"""What a server declares follows from what was registered, and so does what it answers."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from mcp_types import Icon

from django_mcp import MCPServer
from tests.server.support import LEGACY, MODERN, REVISIONS, client_of


def tool(server: MCPServer) -> None:
    server.tool(name="it")(lambda: "")


def prompt(server: MCPServer) -> None:
    server.prompt(name="it")(lambda: "")


def resource(server: MCPServer) -> None:
    server.resource("x://y", name="it")(lambda: "")


def template(server: MCPServer) -> None:
    def it(key: str) -> str:
        return key

    server.resource("x://{key}")(it)


def completed(server: MCPServer) -> None:
    def it(tone: Literal["calm"]) -> str:
        return tone

    server.prompt(it)


def own_completion(server: MCPServer) -> None:
    template(server)
    server.completion("x://{key}", "key")(lambda value: [])


METHODS = {
    "tools": ["tools/list", "tools/call"],
    "prompts": ["prompts/list", "prompts/get"],
    "resources": ["resources/list", "resources/templates/list", "resources/read"],
    "completions": ["completion/complete"],
}
CHANGES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
FEATURES: dict[Any, set[str]] = {
    tool: {"tools"},
    prompt: {"prompts"},
    resource: {"resources"},
    template: {"resources"},
    completed: {"prompts", "completions"},
    own_completion: {"resources", "completions"},
}


def declared(server: MCPServer, revision: str) -> dict[str, Any]:
    client = client_of(server, revision)
    first = client.request("server/discover") if revision == MODERN else client.initialize()
    return first.assert_ok().result["capabilities"]


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("register", FEATURES, ids=lambda each: each.__name__)
def test_what_was_registered_is_declared_and_the_rest_does_not_exist(register, revision):
    server = MCPServer("test")
    register(server)
    features = FEATURES[register]
    logging = set() if revision == MODERN else {"logging"}
    assert declared(server, revision) == {
        name: CHANGES.get(name, {}) for name in features | logging
    }
    client = client_of(server, revision)
    for feature, methods in METHODS.items():
        for method in methods:
            error = client.request(method).error
            if feature not in features:
                assert error["code"] == -32601
                lacking = f"Method not found: {method} (this server has no {feature})"
                assert error["message"] == lacking
            else:
                assert error is None or error["code"] == -32602


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_an_empty_server_declares_nothing(revision):
    logging = {} if revision == MODERN else {"logging": {}}
    assert declared(MCPServer("test"), revision) == logging


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_hidden_things_are_declared_all_the_same(revision):
    server = MCPServer("test")
    server.tool(name="it", permission=lambda user: False)(lambda: "")
    assert "tools" in declared(server, revision)
    assert client_of(server, revision).list_tools() == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_methods_exist_in_their_era_alone(revision, db):
    server = MCPServer("test")
    tool(server)
    client = client_of(server, revision)
    for method in ("server/discover",):
        error = client.request(method).error
        assert (error is None) is (revision == MODERN)
    for method in ("resources/subscribe", "resources/unsubscribe"):
        error = client.request(method, uri="x://y").error
        assert error["code"] == -32601
    for method, params in (("ping", {}), ("logging/setLevel", {"level": "info"})):
        error = client.request(method, **params).error
        assert (error is None) is (revision in LEGACY)
    for method in ("tools/nothing", "resources/subscribe", "", "tasks/list", "x" * 5000):
        answer = client.request(method).assert_error(-32601, "Method not found")
        assert len(answer.error["message"]) < 200


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_server_says_who_it_is_in_the_fields_of_the_revision(revision):
    server = MCPServer(
        "shop",
        version="1.2",
        title="The shop",
        description="Sells",
        website_url="https://example.com",
        icons=[Icon(src="x:i")],
        instructions="Be kind.",
    )
    client = client_of(server, revision)
    modern = revision == MODERN
    result = (client.request("server/discover") if modern else client.initialize()).result
    info = result["_meta"]["io.modelcontextprotocol/serverInfo"] if modern else result["serverInfo"]
    second, third = {"title"}, {"description", "websiteUrl", "icons"}
    age = REVISIONS.index(revision)
    assert info.keys() == {"name", "version"} | (second if age >= 1 else set()) | (
        third if age >= 2 else set()
    )
    assert result["instructions"] == "Be kind."


@pytest.mark.parametrize("level", ["loud", "INFO", "", 5, None])
def test_an_invalid_log_level_is_refused(level, db):
    client = client_of(MCPServer("test"), LEGACY[2])
    client.request("logging/setLevel", level=level).assert_error(-32602, "params.level")
