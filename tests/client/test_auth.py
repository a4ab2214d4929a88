"""How the client shows who it is, and that it shows it to nobody else."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from django_mcp.client import AuthenticationFailed, Client, RemoteError, UnexpectedAnswer

from .scripted import URL, ModernServer, Reply, Seen, Server, as_json, text

SECRET = "s3cret-t0ken"


class Guarded(ModernServer):
    """Lets in who has the token of the day."""

    token = SECRET

    async def reply(self, seen: Seen) -> Reply:
        if seen.headers.get("authorization") != f"Bearer {self.token}":
            return as_json(seen.error(-32600, "Who are you?"), 401)
        self.handlers["tools/call"] = lambda seen: as_json(seen.result(text("done")))
        return await super().reply(seen)


async def test_a_token_is_sent() -> None:
    server = Guarded()
    async with server.client(auth=SECRET) as client:
        await client.call_tool("pay")


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_function_is_asked_again_once_when_its_token_has_expired(
    asynchronous: bool,
) -> None:
    server, asked = Guarded(), []

    def token() -> str:
        asked.append(server.token)
        return server.token

    async def atoken() -> str:
        return token()

    async with server.client(auth=atoken if asynchronous else token) as client:
        await client.call_tool("pay")
        assert len(asked) == 1
        server.token = "tomorrow"
        await client.call_tool("pay")
        assert asked == [SECRET, "tomorrow"]


async def test_but_not_twice() -> None:
    server, asked = Guarded(), []

    def token() -> str:
        asked.append(None)
        return SECRET if len(asked) == 1 else "wrong"

    async with server.client(auth=token) as client:
        server.token = "tomorrow"
        with pytest.raises(AuthenticationFailed, match="Who are you") as caught:
            await client.call_tool("pay")
    assert caught.value.status == 401
    assert len(asked) == 2


async def test_an_error_of_oauths_is_no_error_of_json_rpc() -> None:
    server = ModernServer()
    server.handlers["tools/call"] = lambda seen: as_json({"error": "invalid_token"}, 401)
    async with server.client() as client:
        with pytest.raises(AuthenticationFailed, match="401"):
            await client.call_tool("pay")


async def test_what_httpx_offers_is_taken_as_it_is() -> None:
    server = ModernServer()
    async with server.client(auth=httpx.BasicAuth("me", SECRET)):
        pass
    assert server.seen[0].headers["authorization"].startswith("Basic ")


async def test_a_function_that_fails_says_so_itself() -> None:
    def token() -> str:
        raise LookupError("no such token")

    with pytest.raises(LookupError):
        await Guarded().client(auth=token).open()


@pytest.mark.parametrize("token", ["a\nb: c", "", "ünï", "two words"])
def test_what_cannot_be_a_token_is_refused_unseen(token: str) -> None:
    with pytest.raises(ValueError, match="not a bearer token") as caught:
        Client(URL, auth=token)
    assert not token or token not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://server.example/mcp", "/mcp", "server.example", "https://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises((ValueError, httpx.InvalidURL)):
        Client(url)


def test_headers_cannot_begin_another_one() -> None:
    with pytest.raises(ValueError, match="X-Key") as caught:
        Client(URL, headers={"X-Key": f"{SECRET}\r\nX-Other: 1"})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(status: int) -> None:
    server = Server()
    elsewhere = {"Location": "https://me:pw@elsewhere.example/mcp?key=k3y"}
    server.handlers["server/discover"] = lambda seen: httpx.Response(status, headers=elsewhere)
    told = r"sends to https://elsewhere\.example/mcp; redirects are not followed"
    with pytest.raises(UnexpectedAnswer, match=told):
        await server.client(auth=SECRET).open()
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("challenge", "scope"),
    [
        ('Bearer error="insufficient_scope", scope="read pay"', "read pay"),
        ('Bearer realm="x",SCOPE = "pay", error="insufficient_scope"', "pay"),
        ('Bearer error="invalid_token"', None),
        ('Bearer x_scope="no", scope="ev\\il"', None),
        ('Bearer scope="read', None),
        ("", None),
    ],
)
@pytest.mark.parametrize("status", [401, 403])
async def test_the_scopes_that_a_refusal_asks_for_are_told(
    challenge: str, scope: str | None, status: int
) -> None:
    server = ModernServer()
    server.handlers["tools/call"] = lambda seen: httpx.Response(
        status, headers={"WWW-Authenticate": challenge}
    )
    async with server.client() as client:
        with pytest.raises(AuthenticationFailed) as refused:
            await client.call_tool("pay")
    assert refused.value.scope == scope
    assert (scope or "said") in str(refused.value)


class Provider(httpx.Auth):
    """Keeps the URL of its server where the official SDK's providers do."""

    def __init__(self, url: str) -> None:
        self.context = SimpleNamespace(server_url=url)


@pytest.mark.parametrize(
    "meant",
    [
        "https://other.example/mcp",
        "http://server.example/mcp",
        "https://server.example:8443/mcp",
        "https://server.example/other",
        "https://server.example/mc",
        "https://server.example/mcp/deeper",
    ],
)
def test_the_login_of_one_server_is_not_taken_for_another(meant: str) -> None:
    with pytest.raises(ValueError, match="for the server") as refused:
        Client(URL, auth=Provider(f"{meant}?key=k3y"))
    assert meant in str(refused.value)
    assert "k3y" not in str(refused.value)


@pytest.mark.parametrize(
    "meant", [URL, f"{URL}/", "https://server.example", "https://SERVER.example:443/mcp?a=1"]
)
def test_the_login_of_a_server_is_taken_for_it_however_its_url_is_written(meant: str) -> None:
    assert repr(Client(URL, auth=Provider(meant))) == f"<Client of {URL}, closed>"


async def test_secrets_are_in_no_log_and_no_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = Guarded()
    url = f"https://user:{SECRET}@server.example/mcp?key=k3y"
    client = Client(url, auth=SECRET, headers={"X-Key": SECRET}, transport=server)
    texts = [repr(client), str(client)]
    async with client:
        server.handlers["prompts/get"] = lambda seen: as_json(seen.error(-32602))
        texts.append(repr(client))
        with pytest.raises(RemoteError) as caught:
            await client.get_prompt("greet")
        texts += [repr(caught.value), str(caught.value)]
        server.token = "tomorrow"
        with pytest.raises(AuthenticationFailed) as refused:
            await client.get_prompt("greet")
        texts += [repr(refused.value), str(refused.value)]
    assert not [each for each in [*texts, caplog.text] if SECRET in each]
    assert "k3y" not in repr(client)
    assert "server.example" in repr(client)


async def test_credentials_in_the_url_are_sent_as_a_header() -> None:
    server: Any = ModernServer()
    async with Client(f"https://me:{SECRET}@server.example/mcp", transport=server):
        pass
    assert server.seen[0].headers["authorization"].startswith("Basic ")
