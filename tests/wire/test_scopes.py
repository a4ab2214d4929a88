"""What a client may not do for want of scopes is shown, and refused with a challenge."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.urls import include, path
from django.utils.translation import gettext_lazy

from django_mcp import Context, MCPServer, RegistrationError, endpoint, mcp
from django_mcp.auth import Principal
from django_mcp.checks import check_scopes
from django_mcp.conf import get_settings, read_settings
from django_mcp.protocol.errors import ErrorCode
from django_mcp.testing import MCPClient
from tests.support.answers import HTTPAnswer
from tests.support.caller import Caller
from tests.support.messages import LEGACY, MODERN, REVISIONS, request, tool_call
from tests.support.sites import urlconf

CODE = ErrorCode.INSUFFICIENT_SCOPE
METADATA = "http://testserver/.well-known/oauth-protected-resource/mcp"
HIERARCHY = {"orders:write": ["orders:read"], "admin": ["orders:write"]}

shop = MCPServer("shop", scopes=["mcp"])
ran: list[str] = []


def staff(user: Any) -> bool:
    return bool(user.is_staff)


@shop.tool(read_only=True)
def greet() -> str:
    """Need nothing but what the server needs."""
    return "Hello"


@shop.tool(scopes=["orders:write", "orders:read"])
def ship(ctx: Context) -> str:
    """Ship all orders."""
    ran.append("ship")
    ctx.progress(1)
    return "Shipped"


@shop.tool(scopes=["orders:write"], permission=staff)
def hide() -> str:
    """Be for the staff alone."""
    return "Hidden"


@shop.tool(scopes=["orders:write"])
def refund(ctx: Context) -> str:
    """Ask before acting."""
    if not ctx.elicit("Refund?", bool):
        return "Nothing done."
    ran.append("refund")
    return "Refunded."


@shop.resource("order://{id}", scopes=["orders:read"], list=lambda: [])
def order(id: str) -> str:
    """Be read by those who may read orders."""
    return id


@shop.completion("order://{id}", "id")
def complete_id(value: str) -> list[str]:
    return ["7"]


@shop.prompt(scopes=["orders:read"])
def summarise() -> str:
    """Be a prompt."""
    return "Summarise."


def by_header(request: HttpRequest) -> Principal | None:
    """Let in whoever says so, with the scopes that he names."""
    scopes = request.headers.get("X-Scopes")
    if scopes is None:
        return None
    user, _ = get_user_model().objects.get_or_create(username="anna")
    reading = request.headers.get("X-Reading") is not None
    return Principal(user, "client", frozenset(scopes.split()), read_only=reading)


@pytest.fixture(autouse=True)
def oauth(settings):
    ran.clear()
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=shop, auth=by_header), path("", include("django_mcp.well_known"))
    )
    settings.DJANGO_MCP = {
        "AUTHORIZATION_SERVERS": ["https://id.example.com"],
        "SCOPES": {"mcp": "Use it", "orders:read": gettext_lazy("Read"), "orders:write": "Write"},
        "SCOPE_HIERARCHY": HIERARCHY,
        "WORKER_THREADS": 2,
    }


def configure(settings: Any, **keys: Any) -> None:
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **keys}


def with_scopes(caller: Caller, *scopes: str, **headers: str) -> Caller:
    return caller.with_headers(X_Scopes=" ".join(scopes), Authorization="Bearer x", **headers)


def opened(caller: Caller, revision: str) -> Caller:
    """Return the caller in a session that somebody with all scopes has opened."""
    if revision == MODERN:
        return caller
    session = with_scopes(caller, "mcp").opened(revision).session
    assert session is not None
    return caller.in_session(session, revision)


def challenged(answer: HTTPAnswer, *scopes: str, request_id: Any = 1, status: int = 403) -> None:
    """Assert one challenge for all of these scopes."""
    assert answer.status == status, answer
    assert answer.error["code"] == CODE
    assert answer.message["id"] == request_id
    error = "" if status == 401 else ', error="insufficient_scope"'
    scope = f', scope="{" ".join(scopes)}"' if scopes else ""
    expected = f'Bearer realm="shop"{error}{scope}, resource_metadata="{METADATA}"'
    assert answer.header("WWW-Authenticate") == expected
    assert answer.error["data"].get("scope", "") == " ".join(scopes)
    assert answer.error["data"]["resource_metadata"] == METADATA


NEEDS = [
    ("tools/call", {"name": "greet", "arguments": {}}, ["mcp"]),
    ("tools/call", {"name": "ship", "arguments": {}}, ["mcp", "orders:write", "orders:read"]),
    ("prompts/get", {"name": "summarise"}, ["mcp", "orders:read"]),
    ("resources/read", {"uri": "order://7"}, ["mcp", "orders:read"]),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "order://{id}"},
            "argument": {"name": "id", "value": ""},
        },
        ["mcp", "orders:read"],
    ),
    ("tools/list", {}, ["mcp"]),
    ("resources/templates/list", {}, ["mcp"]),
]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("method", "params", "needed"), NEEDS, ids=lambda each: str(each)[:30])
def test_what_a_request_needs_is_in_one_challenge(caller, revision, method, params, needed):
    member = opened(caller, revision)
    for lacking in needed:
        given = [each for each in needed if each != lacking]
        if lacking == "orders:read" and "orders:write" in given:
            continue  # which includes it
        challenged(with_scopes(member, *given).call(method, **params), *needed)
    challenged(with_scopes(member).call(method, "id", **params), *needed, request_id="id")
    assert ran == []
    assert "result" in with_scopes(member, *needed).call(method, **params).message


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_wider_scope_includes_narrower_ones(caller, revision):
    member = opened(caller, revision)
    assert "result" in with_scopes(member, "mcp", "admin").call("tools/call", name="ship").message
    challenged(
        with_scopes(member, "mcp", "orders:read").call("tools/call", name="ship"),
        *("mcp", "orders:write", "orders:read"),
    )


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_scopes_do_not_hide_and_permissions_do(caller, revision):
    member = with_scopes(opened(caller, revision), "mcp")
    listed = member.call("tools/list").result["tools"]
    assert {each["name"] for each in listed} == {"greet", "ship", "refund"}
    for name in ("hide", "no_such_tool"):
        answer = member.call("tools/call", name=name, arguments={})
        assert answer.error["code"] == ErrorCode.INVALID_PARAMS, "nothing tells of what is hidden"
    challenged(with_scopes(opened(caller, revision)).call("tools/call", name="hide"), "mcp")


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_what_chatgpt_reads_of_a_tool_says_its_scopes(caller, revision, settings):
    def schemes(member: Caller) -> dict[str, Any]:
        tools = member.call("tools/list").result["tools"]
        return {each["name"]: each.get("_meta", {}).get("securitySchemes") for each in tools}

    member = with_scopes(opened(caller, revision), "mcp")
    assert schemes(member) == {
        "greet": [{"type": "oauth2", "scopes": ["mcp"]}],
        "ship": [{"type": "oauth2", "scopes": ["mcp", "orders:write", "orders:read"]}],
        "refund": [{"type": "oauth2", "scopes": ["mcp", "orders:write"]}],
    }
    configure(settings, AUTHORIZATION_SERVERS=[])
    assert set(schemes(member).values()) == {None}


@pytest.mark.parametrize("revision", LEGACY)
def test_whatever_a_session_is_for_needs_the_scopes_of_the_server(caller, revision):
    member = opened(caller, revision)
    wanting = with_scopes(member)
    for answer in (
        wanting.send("GET"),
        wanting.send("DELETE"),
        wanting.post({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        wanting.post({"jsonrpc": "2.0", "id": "q", "result": {}}),
    ):
        challenged(answer, "mcp", request_id=None)
    challenged(with_scopes(caller).initialize(revision), "mcp")
    assert with_scopes(member, "mcp").send("DELETE").status == 204


def test_in_a_batch_only_what_lacks_scopes_is_refused(caller):
    member = with_scopes(opened(caller, "2025-03-26"), "mcp")
    answer = member.post([tool_call("greet", 1), tool_call("ship", 2), request("ping", 3)])
    assert answer.status == 200
    by_id = {each["id"]: each for each in answer.message}
    assert "result" in by_id[1]
    assert "result" in by_id[3]
    assert by_id[2]["error"]["code"] == CODE
    assert by_id[2]["error"]["data"] == {
        "realm": "shop",
        "error": "insufficient_scope",
        "scope": "mcp orders:write orders:read",
        "resource_metadata": METADATA,
    }
    assert ran == []


def test_subscribing_needs_what_reading_does(caller):
    member = opened(caller, "2025-11-25")
    needed = ("mcp", "orders:read")
    challenged(with_scopes(member, "mcp").call("resources/subscribe", uri="order://7"), *needed)
    if caller.entrance.name == "mount":  # elsewhere nothing is listened to
        wanted = {"resourceSubscriptions": ["order://7", "other://7"]}
        answer = with_scopes(caller, "mcp").call("subscriptions/listen", notifications=wanted)
        challenged(answer, *needed)
        # One challenge names all that is needed, also what all requests need.
        bare = with_scopes(caller).call("subscriptions/listen", notifications=wanted)
        challenged(bare, *needed)
    challenged(with_scopes(caller).call("subscriptions/listen", notifications={}), "mcp")
    granted = with_scopes(member, *needed).call("resources/subscribe", uri="order://7")
    assert granted.result == {}


def test_who_comes_back_with_an_answer_is_asked_for_scopes_again(caller):
    member = with_scopes(caller, "mcp", "orders:write")
    message = {"name": "refund", "arguments": {}}
    capable = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    first = member.call("tools/call", **message, meta=capable)
    assert first.result["resultType"] == "input_required", first
    (key,) = first.result["inputRequests"]
    answers = {
        "requestState": first.result["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"value": True}}},
    }
    narrowed = with_scopes(caller, "mcp").call("tools/call", **message, **answers, meta=capable)
    challenged(narrowed, "mcp", "orders:write")
    assert ran == []
    member.call("tools/call", **message, **answers, meta=capable)
    assert ran == ["refund"]


def test_whoever_has_shown_no_credentials_is_asked_for_them(caller, settings):
    from django_mcp.auth import public  # noqa: PLC0415 - beside its use: it is an AUTH here

    open_shop = MCPServer("shop")
    open_shop.tool(name="greet")(greet)
    open_shop.tool(name="ship", scopes=["orders:write"])(ship)

    def anybody(request: HttpRequest) -> Principal:
        return public(request)

    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=open_shop, auth=anybody))
    assert "result" in caller.call("tools/call", name="greet").message
    answer = caller.call("tools/call", name="ship")
    challenged(answer, "orders:write", status=401)
    assert "https://id.example.com" in answer.error["message"]


def test_reading_credentials_call_tools_that_only_read(caller):
    reader = with_scopes(caller, "mcp", "admin", X_Reading="1")
    assert "result" in reader.call("tools/call", name="greet").message
    assert "result" in reader.call("resources/read", uri="order://7").message
    needed = ("mcp", "orders:write", "orders:read")
    challenged(reader.call("tools/call", name="ship"), *needed)
    assert ran == []


def test_scopes_for_reading_call_tools_that_only_read(caller, settings):
    configure(settings, READ_ONLY_SCOPES=["mcp", "orders:read"])
    plain = MCPServer("shop")
    plain.tool(read_only=True)(greet)
    plain.tool(name="touch")(greet)
    plain.tool(name="touch_other", scopes=["undeclared"])(greet)
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=plain, auth=by_header))
    for scopes in (["orders:read"], ["mcp", "orders:read", "openid"], []):
        reader = with_scopes(caller, *scopes)
        assert "result" in reader.call("tools/call", name="greet").message
        # What would do is the scope that includes one for reading.
        challenged(reader.call("tools/call", name="touch"), "orders:write")
    for scopes in (["orders:write"], ["admin"]):
        assert "result" in with_scopes(caller, *scopes).call("tools/call", name="touch").message
    writer = with_scopes(caller, "orders:read", "undeclared")
    assert "result" in writer.call("tools/call", name="touch_other").message


@pytest.mark.parametrize(
    ("which", "first"),
    [("needed", ["mcp"]), ("all", ["mcp", "orders:write", "orders:read", "admin"])],
)
def test_the_baseline_is_what_a_client_asks_for_first_or_all(caller, settings, which, first):
    configure(settings, SCOPES_AT_LOGIN=which)
    entrance = caller.entrance
    about = entrance.send("GET", "/.well-known/oauth-protected-resource/mcp").json()
    assert about["scopes_supported"] == first
    challenge = caller.call("tools/list").header("WWW-Authenticate")
    asked = " ".join(first)
    assert challenge == f'Bearer realm="shop", resource_metadata="{METADATA}", scope="{asked}"'


def test_the_default_server_has_its_base_in_the_settings(caller, settings):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", auth=by_header))
    assert "result" in with_scopes(caller).call("server/discover").message
    configure(settings, BASE_SCOPES=["mcp"], SERVER_NAME="shop")
    assert mcp.scopes == ("mcp",)
    challenged(with_scopes(caller).call("server/discover"), "mcp")


def test_what_a_function_lists_is_for_those_with_the_scopes(caller):
    from mcp_types import Resource  # noqa: PLC0415 - only here

    lister = MCPServer("shop")

    @lister.resource(
        "secret://{id}", scopes=["secrets"], list=lambda: [Resource(name="a", uri="secret://a")]
    )
    def secret(id: str) -> str:
        return id

    def listed(**options: Any) -> list[str]:
        client = MCPClient(lister).as_user(get_user_model()(username="b"), **options)
        assert client.list_resource_templates(), "the template is shown in any case"
        return [each["uri"] for each in client.list_resources()]

    assert listed(scopes=["secrets"]) == ["secret://a"]
    assert listed(scopes=[]) == []
    assert listed() == ["secret://a"]


def test_the_test_client_has_the_scopes_that_it_is_given(db):
    anna = get_user_model().objects.create_user("anna")
    assert MCPClient(shop).as_user(anna).tool("ship").assert_ok()
    limited = MCPClient(shop, revision=MODERN).as_user(anna, scopes=["mcp", "orders:read"])
    answer = limited.tool("ship").assert_error(CODE, "orders:write")
    assert answer.http.status_code == 403
    reader = MCPClient(shop).as_user(anna, read_only=True)
    reader.tool("greet").assert_ok()
    reader.tool("ship").assert_error(CODE, "reading only")


def test_a_function_knows_the_scopes_of_its_caller(db):
    server = MCPServer("scopes")

    @server.tool
    def mine(ctx: Context) -> str:
        return " ".join(sorted(ctx.scopes))

    anna = get_user_model().objects.create_user("anna")
    MCPClient(server).as_user(anna, scopes=["b", "a"]).tool("mine").assert_contains("a b")
    assert MCPClient(server).as_user(anna).tool("mine").text == ""


@pytest.mark.parametrize("scope", ["a b", "", 'a"', "a\\", "ü", 7, "offline_access"])
def test_what_is_no_scope_is_refused_where_it_is_written(scope):
    server = MCPServer("scopes")
    with pytest.raises(RegistrationError, match="scopes="):
        server.tool(name="a", scopes=[scope])(greet)
    with pytest.raises(RegistrationError, match="'scopes'"):
        MCPServer("scopes", scopes=[scope])
    for raw in (
        {"BASE_SCOPES": [scope]},
        {"SCOPES": {scope: ""}},
        {"SCOPE_HIERARCHY": {scope: []}},
    ):
        with pytest.raises(Exception, match=r"DJANGO_MCP|keywords must be strings"):
            read_settings(raw)


def test_one_scope_is_no_list_of_letters():
    with pytest.raises(RegistrationError, match=r'\["orders"\]'):
        MCPServer("scopes").tool(name="a", scopes="orders")(greet)
    assert read_settings({"BASE_SCOPES": "orders"}).base_scopes == ("orders",)
    assert read_settings({"SCOPE_HIERARCHY": {"a": "bc"}}).scope_hierarchy == {"a": ("bc",)}


def test_a_circle_of_scopes_ends(db, settings):
    configure(settings, SCOPE_HIERARCHY={"a": ["b"], "b": ["a", "mcp"]})
    assert get_settings().scope_hierarchy["b"] == ("a", "mcp")
    anna = get_user_model().objects.create_user("anna")
    MCPClient(shop).as_user(anna, scopes=["a"]).tool("greet").assert_ok()


def test_a_challenge_without_oauth_names_no_document(db, settings):
    configure(settings, AUTHORIZATION_SERVERS=[])
    anna = get_user_model().objects.create_user("anna")
    answer = MCPClient(shop, revision=MODERN).as_user(anna, scopes=[]).tool("greet")
    expected = 'Bearer realm="shop", error="insufficient_scope", scope="mcp"'
    assert answer.http["WWW-Authenticate"] == expected
    assert json.loads(answer.http.content)["error"]["code"] == CODE


def test_a_check_finds_a_scope_that_the_site_does_not_have(settings):
    def found() -> list[str]:
        assert {each.id for each in check_scopes()} <= {"django_mcp.W021"}
        return [each.msg for each in check_scopes()]

    configure(settings, SCOPE_HIERARCHY={"orders:write": ["orders:read"]})
    assert found() == []
    configure(
        settings, SCOPE_HIERARCHY={"order:write": ["orders:rea"]}, READ_ONLY_SCOPES=["reading"]
    )
    assert [each.partition(" has the scope ")[2].partition(",")[0] for each in found()] == [
        "'order:write'",
        "'orders:rea'",
        "'reading'",
    ]
    assert "Did you mean 'orders:write'?" in found()[0]
    configure(settings, SCOPE_HIERARCHY={}, READ_ONLY_SCOPES=[], SCOPES={"mcp": "", "other": ""})
    read, write = found()
    assert read.endswith("of the server 'shop' has the scope 'orders:read', which SCOPES has not.")
    assert write.endswith(
        "of the server 'shop' has the scope 'orders:write', which SCOPES has not."
    )
    configure(settings, SCOPES={})
    assert found() == []
