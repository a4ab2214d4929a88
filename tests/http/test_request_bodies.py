"""Bodies that come slowly, or never to their end, over real sockets."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import uvicorn
from django.contrib.auth.models import AnonymousUser
from django.core.asgi import get_asgi_application

from django_mcp import MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import Principal, Refusal
from django_mcp.http import admission
from django_mcp.http.request_bodies import Begun, RequestBodies, request_bodies
from tests.support.asgi import post, request, scope_of
from tests.support.messages import modern
from tests.support.sites import run, urlconf
from tests.support.streams import BOUND

pytestmark = pytest.mark.django_db(transaction=True)
server = MCPServer("bodies", version="1")
KILOBYTE = 1024


@server.tool
async def length(text: str) -> int:
    """Tell how long a text is."""
    return len(text)


def by_header(request: Any) -> Principal | Refusal:
    client = request.headers.get("X-Client", "")
    if client == "unwelcome":
        return Refusal("Not you", status=403)
    return Principal(AnonymousUser(), client_id=client)


@pytest.fixture(autouse=True)
def _site(settings):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.DJANGO_MCP = {"AUTH": by_header}


@pytest.fixture
def limits(settings) -> Callable[..., None]:
    def limit(**given: Any) -> None:
        settings.DJANGO_MCP = {**settings.DJANGO_MCP, **given}

    return limit


class Plain:
    """An awaitable with the least that one can have."""

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self._steps = future.__await__()

    def __await__(self) -> Plain:
        return self

    def __iter__(self) -> Plain:
        return self

    def __next__(self) -> Any:
        return next(self._steps)


@dataclass
class Upload:
    """A request whose body goes out piece by piece."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    rest: bytes

    async def send(self, size: int | None = None) -> None:
        """Send so much more of the body, or all that is left."""
        size = len(self.rest) if size is None else size
        self.writer.write(self.rest[:size])
        self.rest = self.rest[size:]
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], Any]:
        """Return what comes back: status, headers, message."""
        async with asyncio.timeout(BOUND):
            status = int((await self.reader.readline()).split()[1])
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines if line)
            body = await self.reader.readexactly(int(headers["content-length"]))
        return status, headers, json.loads(body)

    async def is_closed(self) -> bool:
        """Return whether the server ends the connection."""
        async with asyncio.timeout(BOUND):
            return await self.reader.read() == b""


@dataclass
class Site:
    """The mount behind a server."""

    port: int
    uploads: list[Upload]

    async def upload(self, size: int = 10 * KILOBYTE, **headers: str) -> Upload:
        """Begin a call with a body of about ``size``."""
        message, mirrored = modern("tools/call", name="length", arguments={"text": "x" * size})
        body = json.dumps(message).encode()
        given = {
            "Host": "testserver",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Content-Length": str(len(body)),
            **mirrored,
            **headers,
        }
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode())
        self.uploads.append(Upload(reader, writer, body))
        return self.uploads[-1]


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    application: Any = mount(get_asgi_application())
    config = uvicorn.Config(application, port=0, lifespan="off", log_level="error")
    serves = uvicorn.Server(config)
    serves.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(serves._serve())
    async with asyncio.timeout(BOUND):
        while not serves.started:
            await asyncio.sleep(0.01)
    site = Site(serves.servers[0].sockets[0].getsockname()[1], [])
    try:
        yield site
    finally:
        for upload in site.uploads:
            upload.writer.close()
        serves.should_exit = serves.force_exit = True
        await task


def at_the_mount(story: Callable[[Site], Awaitable[None]]) -> None:
    async def main() -> None:
        async with serving() as site:
            await story(site)

    run(main())


async def held(at_least: int) -> int:
    """Wait until unfinished bodies hold so much; return how much they do."""
    async with asyncio.timeout(BOUND):
        while request_bodies().held < at_least:
            await asyncio.sleep(0.01)
    return request_bodies().held


@pytest.mark.parametrize("sent", [0, 100])
def test_a_body_that_stops_coming_is_given_up(limits, sent):
    limits(BODY_PAUSE_SECONDS=0.3, BODY_SECONDS=600)

    async def story(site: Site) -> None:
        upload = await site.upload()
        await upload.send(sent)
        status, headers, message = await upload.answer()
        assert status == 408
        assert headers["connection"] == "close"
        assert message["id"] is None
        assert "0.3 seconds" in message["error"]["message"]
        assert await upload.is_closed()
        assert request_bodies().held == 0

    at_the_mount(story)


def test_a_body_that_never_ends_is_given_up_although_it_comes(limits):
    limits(BODY_PAUSE_SECONDS=60, BODY_SECONDS=1)

    async def story(site: Site) -> None:
        upload = await site.upload()
        answer = asyncio.create_task(upload.answer())
        while not answer.done():
            await upload.send(1)
            await asyncio.sleep(0.02)
        status, _, message = await answer
        assert status == 408
        assert "within 1 second" in message["error"]["message"]

    at_the_mount(story)


def test_a_body_that_comes_slowly_is_served():
    async def story(site: Site) -> None:
        upload = await site.upload(300 * KILOBYTE)
        while len(upload.rest) > 20 * KILOBYTE:
            await upload.send(10 * KILOBYTE)
            await asyncio.sleep(0.02)
        await upload.send()
        status, _, message = await upload.answer()
        assert status == 200
        assert message["result"]["structuredContent"] == 300 * KILOBYTE
        assert request_bodies().held == 0

    at_the_mount(story)


def test_bodies_that_are_not_complete_have_a_bound_together(limits):
    limits(MAX_BODY_BYTES=300 * KILOBYTE, MAX_RECEIVING_BYTES=1000 * KILOBYTE)

    async def story(site: Site) -> None:
        uploads = [await site.upload(250 * KILOBYTE) for _ in range(12)]
        for upload in uploads:
            await upload.send(200 * KILOBYTE)
        answers = [asyncio.create_task(upload.answer()) for upload in uploads]
        async with asyncio.timeout(BOUND):
            while sum(answer.done() for answer in answers) < 7:
                assert request_bodies().held <= 1000 * KILOBYTE
                await asyncio.sleep(0.01)
        status, headers, message = await next(each for each in answers if each.done())
        assert status == 503
        assert int(headers["retry-after"]) > 0
        assert message["error"]["code"] == -32603
        # Those that came first go on, and so does whatever is small.
        await uploads[0].send()
        assert (await answers[0])[0] == 200
        small = await site.upload(KILOBYTE)
        await small.send()
        assert (await small.answer())[0] == 200
        for upload in uploads:
            upload.writer.close()
        async with asyncio.timeout(BOUND):
            while request_bodies().held:
                await asyncio.sleep(0.01)
        assert not request_bodies()._held_by, "nothing is kept of who has sent something"
        for answer in answers:
            answer.cancel()

    at_the_mount(story)


def test_who_sends_most_at_once_gives_way_to_others(limits):
    limits(MAX_BODY_BYTES=300 * KILOBYTE, MAX_RECEIVING_BYTES=600 * KILOBYTE)

    async def story(site: Site) -> None:
        many = []
        for number in range(2):
            upload = await site.upload(280 * KILOBYTE, **{"X-Client": "many"})
            await upload.send(250 * KILOBYTE)
            await held(at_least=(number + 1) * 240 * KILOBYTE)
            many.append(upload)
        other = await site.upload(280 * KILOBYTE, **{"X-Client": "other"})
        await other.send(250 * KILOBYTE)
        assert (await many[1].answer())[0] == 503
        for upload in (many[0], other):
            await upload.send()
            assert (await upload.answer())[0] == 200

    at_the_mount(story)


def test_large_bodies_that_wait_to_be_read_have_the_same_bound(limits, monkeypatch):
    limits(MAX_BODY_BYTES=300 * KILOBYTE, MAX_RECEIVING_BYTES=1000 * KILOBYTE)
    let_go, parse = threading.Event(), admission._parse_large

    def hold(*given: Any) -> Any:
        assert let_go.wait(BOUND)
        return parse(*given)

    monkeypatch.setattr(admission, "_parse_large", hold)

    async def main() -> list[int]:
        message, headers = modern("notifications/none", text="x" * 240 * KILOBYTE)
        del message["id"]
        application: Any = mount(get_asgi_application())
        calls = [
            asyncio.create_task(post(application, message, headers=headers)) for _ in range(12)
        ]
        async with asyncio.timeout(BOUND):
            while sum(each.done() for each in calls) < 8:
                assert request_bodies().held <= 1000 * KILOBYTE
                await asyncio.sleep(0.01)
        let_go.set()
        found = [(await each).status for each in calls]
        assert not request_bodies().held
        return found

    try:
        # Which of them came first is for the threads to say that ask who sends them.
        assert sorted(run(main())) == [202] * 4 + [503] * 8
    finally:
        let_go.set()


@pytest.mark.parametrize(("padding", "request_id"), [(0, 7), (100 * KILOBYTE, None)])
def test_of_a_refused_body_little_is_read(padding, request_id):
    message, headers = modern("tools/call", 7, name="length", arguments={"text": "x" * padding})
    body = json.dumps(message).encode()
    pieces = [body[start : start + 4 * KILOBYTE] for start in range(0, len(body), 4 * KILOBYTE)]
    given = {"Host": "testserver", "X-Client": "unwelcome", **headers}
    scope = scope_of("/mcp", headers=given.items())
    answer = run(request(mount(get_asgi_application()), scope, *pieces))
    assert answer.status == 403
    assert answer.json()["id"] == request_id
    assert answer.pieces_read <= 3


def test_a_body_that_is_there_already_is_not_watched(monkeypatch):
    monkeypatch.setattr(RequestBodies, "rest", lambda *args: pytest.fail("It is watched."))
    message, headers = modern("server/discover")
    answer = run(post(mount(get_asgi_application()), message, headers=headers))
    assert answer.status == 200


@pytest.mark.parametrize("begin", [lambda future: future, Plain], ids=["future", "plain"])
def test_whatever_a_server_gives_to_be_awaited_is_awaited(begin):
    """Some give iterators of their own, which know next() and nothing else that generators do."""

    async def main() -> list[Any]:
        loop, found = asyncio.get_running_loop(), []
        for settle in (lambda each: each.set_result(7), lambda each: each.set_exception(OSError())):
            future = loop.create_future()
            first = Begun(begin(future))
            assert not first.is_done
            loop.call_soon(settle, future)
            try:
                found.append(await first)
            except OSError as error:
                found.append(type(error))
        cancelled = asyncio.ensure_future(waiting(begin(loop.create_future())))
        await asyncio.sleep(0)
        cancelled.cancel()
        found.append(await asyncio.gather(cancelled, return_exceptions=True))
        return found

    async def waiting(awaitable: Awaitable[Any]) -> Any:
        return await Begun(awaitable)

    seven, error, (cancelled,) = run(main())
    assert (seven, error, type(cancelled)) == (7, OSError, asyncio.CancelledError)
