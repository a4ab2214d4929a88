"""What is made of servers when this process is asked to stop."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace

import pytest

from django_mcp.running.known_servers import Daphne, Server, Uvicorn, server_behind


class Greeting(asyncio.Protocol):
    """Says one thing to everybody."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_what_has_connected_is_served_before_the_socket_is_closed(turns) -> None:
    async def main() -> tuple[bytes, int]:
        server = await asyncio.get_running_loop().create_server(Greeting, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        # It has connected as far as the system goes: the server does not know of it yet, or is
        # about to accept it.
        with socket.create_connection(address) as client:
            for _ in range(turns):
                await asyncio.sleep(0)
            await Uvicorn(SimpleNamespace(servers=[server])).stop_listening()
            client.settimeout(5)
            said = await asyncio.to_thread(client.recv, 5)
        with socket.socket() as late:
            return said, late.connect_ex(address)

    said, refusal = asyncio.run(main())
    assert said == b"hello"
    assert refusal != 0


class Request:
    """What Daphne has for a request over HTTP, as far as it counts here."""

    responseHeaders = None


class WebSocket:
    """What it has for one that lasts."""


@pytest.mark.parametrize(
    ("protocol", "ends", "is_idle"), [(Request, 0, False), (Request, 1, True), (WebSocket, 0, True)]
)
def test_daphne_is_idle_when_its_requests_have_been_answered(protocol, ends, is_idle) -> None:
    async def main() -> bool:
        answering = asyncio.get_running_loop().create_future()
        if ends:
            answering.set_result(None)
        connections = {protocol(): {"application_instance": answering}, Request(): {}}
        factory = SimpleNamespace(server=SimpleNamespace(connections=connections))
        port = SimpleNamespace(factory=factory, stopListening=None)
        return Daphne(SimpleNamespace(getReaders=lambda: [port, object()])).is_idle

    assert asyncio.run(main()) is is_idle


def test_of_uvicorn_it_is_known_whether_connections_are_open() -> None:
    state = SimpleNamespace(connections=set())
    server = Uvicorn(SimpleNamespace(server_state=state))
    assert not server.has_connections
    state.connections.add("one")
    assert server.has_connections
    assert Server().has_connections  # for all that is known


def test_servers_are_told_by_their_handlers() -> None:
    import uvicorn  # noqa: PLC0415

    server = uvicorn.Server(uvicorn.Config("nothing:application"))
    server.servers = []
    assert isinstance(server_behind(server.handle_exit), Uvicorn)
    assert type(server_behind(print)) is Server
    assert type(server_behind(None)) is Server


def test_nobody_waits_longer_than_the_loop_needs_for_turns(monkeypatch) -> None:
    async def main() -> list[float]:
        server = await asyncio.get_running_loop().create_server(Greeting, "127.0.0.1", 0)
        slept: list[float] = []
        original = asyncio.sleep

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            await original(0)

        monkeypatch.setattr(asyncio, "sleep", sleep)
        await Uvicorn(SimpleNamespace(servers=[server])).stop_listening()
        return slept

    assert set(asyncio.run(main())) == {0}
