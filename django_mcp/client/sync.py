"""The same client without ``await``, for ordinary views, Celery tasks, commands and tests.

Its loop runs in a thread of its own, so that sessions, streams and connections outlast a call. The
functions that answer a server's questions run in the thread that waits for the call.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypedDict, TypeVar, Unpack, cast

import httpx
from mcp_types import Implementation, ServerCapabilities

from .auth import Auth
from .bounds import Limits
from .change_iterator import Change, Changes, no_more_changes
from .client import Client
from .errors import ClientClosed
from .handlers import OnElicit, OnElicitURL, OnLog, OnSample, Roots
from .user_functions import WaitingThread

P = ParamSpec("P")
T = TypeVar("T")

STOP_SECONDS: Final = 5.0
"""How long the calls of other threads, which closing has ended, may take to return."""


class ClientOptions(TypedDict, total=False):
    """What :class:`~django_mcp.client.Client` takes beside the URL."""

    auth: Auth | None
    headers: Mapping[str, str] | None
    timeout: float
    limits: Limits | None
    revision: str | None
    name: str
    version: str
    on_elicit: OnElicit | None
    on_elicit_url: OnElicitURL | None
    on_sample: OnSample | None
    sampling_tools: bool
    roots: Roots | None
    on_log: OnLog | None
    transport: httpx.AsyncBaseTransport | None


class LoopThread:
    """An event loop in a thread of its own, which runs the calls of other threads."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._lock = threading.Lock()
        self._calls: set[Future[Any]] | None = set()
        """Those that run; ``None`` once no more are to begin."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="django-mcp-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine there and wait for it, running here what it hands over meanwhile."""
        waiting = WaitingThread()

        with self._lock:
            if self._calls is None:
                raise _closed()
            future = asyncio.run_coroutine_threadsafe(waiting.serve(work), self._loop)
            self._calls.add(future)
        try:
            return waiting.wait_for(future)
        finally:
            self._forget(future)

    def _forget(self, future: Future[Any]) -> None:
        with self._lock:
            if self._calls is not None:
                self._calls.discard(future)

    def stop(self) -> None:
        """End the loop and its thread, once the calls of other threads have ended."""
        with self._lock:
            calls, self._calls = self._calls or set(), None
        for late in wait(calls, timeout=STOP_SECONDS).not_done:
            late.cancel()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def _blocking(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncClient, P], T]:
    """Return a method of :class:`SyncClient` that does what one of :class:`Client` does."""

    @functools.wraps(method)
    def call(self: SyncClient, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._call(lambda client: method(client, *args, **kwargs))

    return cast("Callable[Concatenate[SyncClient, P], T]", call)


class SyncClient:
    """A client of one MCP server, with the options, methods and errors of :class:`Client`.

    ::

        with SyncClient("https://orders.example/mcp", auth=settings.ORDERS_TOKEN) as orders:
            result = orders.call_tool("find_orders", {"status": "open"})

    Its methods may be called by many threads at once, and raise ``RuntimeError`` in a thread that
    runs an event loop. A process that was forked with an open client opens one of its own when it
    is first used there.
    """

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        self._make = functools.partial(Client, url, **options)
        self._client = self._make()
        self._loop_thread: LoopThread | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return repr(self._client).replace("<Client", "<SyncClient", 1)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> None:
        """Connect, and find out what the server speaks.

        Raises :class:`UnsupportedServer` if client and server have no revision in common.
        """
        _refuse_to_block_a_loop()
        if self._loop_thread is not None:
            raise RuntimeError("The client is open already.")
        self._start()

    def _start(self) -> None:
        self._loop_thread = LoopThread()
        try:
            self._loop_thread.call(self._client.open)
        except BaseException:
            self._loop_thread.stop()
            self._loop_thread = None
            raise

    def close(self) -> None:
        """End the session and close all connections.

        Calls that still run in other threads end with :class:`ClientClosed`.
        """
        loop, self._loop_thread = self._loop_thread, None
        if loop is not None and loop.process == os.getpid():
            loop.call(self._client.close)
            loop.stop()

    def _call(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        _refuse_to_block_a_loop()
        loop = self._own_loop()
        return loop.call(lambda: work(self._client))

    def _own_loop(self) -> LoopThread:
        loop = self._loop_thread
        if loop is not None and loop.process != os.getpid():
            loop = self._after_fork(loop)
        if loop is None:
            raise _closed()
        return loop

    def _after_fork(self, inherited: LoopThread) -> LoopThread | None:
        # The loop's thread stayed in the parent, and so does the session: nothing of either is
        # touched, not even closed.
        with self._lock:
            if self._loop_thread is inherited:
                self._client = self._make()
                self._start()
            return self._loop_thread

    @property
    def revision(self) -> str:
        """The revision of the protocol that both sides speak."""
        return self._client.revision

    @property
    def server_info(self) -> Implementation | None:
        """The name and version of the server, where it gives them."""
        return self._client.server_info

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """What the server can do."""
        return self._client.server_capabilities

    @property
    def instructions(self) -> str | None:
        """What the server wants a model to know."""
        return self._client.instructions

    list_tools = _blocking(Client.list_tools)
    call_tool = _blocking(Client.call_tool)
    list_resources = _blocking(Client.list_resources)
    list_resource_templates = _blocking(Client.list_resource_templates)
    read_resource = _blocking(Client.read_resource)
    list_prompts = _blocking(Client.list_prompts)
    get_prompt = _blocking(Client.get_prompt)
    complete = _blocking(Client.complete)
    ping = _blocking(Client.ping)
    set_log_level = _blocking(Client.set_log_level)

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
    ) -> SyncChanges:
        """Listen for changes of lists, and of the resources ``uris``.

        A context manager; within it, an iterator of :class:`Change`. Entering it raises
        :class:`UnsupportedServer` if the server notifies of none of these changes.
        """
        wanted = {"tools": tools, "prompts": prompts, "resources": resources}
        uris = tuple(uris)

        async def listen(client: Client) -> Changes:
            return client.listen(**wanted, uris=uris)

        return SyncChanges(self._call, self._call(listen))


class SyncChanges:
    """The changes that one ``listen`` asked for: a context manager and iterator."""

    def __init__(self, call: Any, changes: Changes) -> None:
        self._call = call
        self._changes = changes

    def __enter__(self) -> Self:
        self._call(lambda client: self._changes.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Of a client that was closed meanwhile there is nothing left to end.
        with suppress(ClientClosed):
            self._call(lambda client: self._changes.__aexit__(kind, error, traceback))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Change:
        try:
            return self.next()
        except EOFError:
            raise StopIteration from None

    def next(self, timeout: float | None = None) -> Change:
        """Return the next change.

        Raises :class:`CallTimedOut` after ``timeout`` seconds, ``EOFError`` when the subscription
        has ended, and the :class:`ClientError` that ended it, if one did.
        """
        change: Change | None
        try:
            change = self._call(lambda client: self._changes.next(timeout))
        except ClientClosed:
            # Closing has ended the subscription; changes from before may be read all the same.
            change = self._changes.pop()
        if change is None:
            raise no_more_changes()
        return change


def _closed() -> ClientClosed:
    return ClientClosed("The client is not open; use it as a context manager")


def _refuse_to_block_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("SyncClient would block the event loop that runs here; use Client.")
