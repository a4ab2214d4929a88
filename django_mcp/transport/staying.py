"""Clients of the modern era that stay: a connection that is there for what changes later on."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from ..principal import Guard
from ..protocol.messages import Notification, encode, notification
from ..protocol.topics import Topic
from ..server.ports import Runner
from ..store.changes.change_log import Key, key_of
from ..store.changes.feed import Listener
from ..store.changes.subscription_rows import begin_listening, end_listening
from ..store.delivery.records import Call, Kind, Message
from ..store.delivery.stream_writer import Post
from ..store.ledger import ledger
from .peers import Direct
from .streams import HELD, Mailbox, settle
from .threads import call_on


class Staying(Direct):
    """Does what :class:`Direct` does, and may stay until the client goes or the server ends it."""

    stays = True

    def __init__(
        self,
        mailbox: Mailbox,
        post: Post,
        call: Call,
        runner: Runner,
        *,
        listens: bool,
        spoke: Callable[[], None],
    ) -> None:
        super().__init__(mailbox, listens=listens, spoke=spoke)
        self._post = post
        self._call = call
        self._runner = runner
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._listener: Listener | None = None
        self._guard: Guard | None = None

    def stop(self, note: Callable[[], object] = lambda: None) -> None:
        """Tell the call to end. From any thread."""
        super().stop(note)
        call_on(self._loop, settle, self._ended)

    def guard(self) -> Guard | None:
        """Also when what has made the call has gone, return what says who may go on."""
        return self._guard

    async def listen(
        self, opening: Notification, wanted: Mapping[Topic, Notification], guard: Guard | None
    ) -> None:
        """See :class:`django_mcp.server.ports.Peer`."""
        self.concludes = True
        self._guard = guard
        try:
            listener = await self._runner.blocking(self._register, wanted)
            # Before anything else on this stream; what changes meanwhile is found by the number.
            self._deliver([_body(opening)])
            self._spoke()
            self._listener = listener
            ledger().changes.add(self._listener)
            ledger().wake()
        except BaseException:
            self._leave()
            raise

    async def stay(self) -> None:
        """Wait until the call is told to end, if it listens: without what has made the call."""
        if self._listener is None:
            return
        try:
            await self._ended
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._listener is not None:
            ledger().changes.remove(self._listener)
        if self._post.is_open:
            ledger().run(lambda: end_listening(self._call.id))

    def _register(self, wanted: Mapping[Topic, Notification]) -> Listener:
        owned = {"owner": ledger().process_id, "channel": ledger().channel()}
        resources = [topic for topic in wanted if topic.uri]
        with self._post.registering():
            seen = begin_listening(self._call, self._post, resources, **owned)
        if self._post.has_ended:
            end_listening(self._call.id)  # its client has gone meanwhile
        # Here, and not on the loop: the keys of many long URIs take a while.
        return self._listens_to(wanted, seen)

    def _listens_to(self, wanted: Mapping[Topic, Notification], seen: int) -> Listener:
        bodies: dict[Key, list[str]] = defaultdict(list)
        for topic, news in wanted.items():
            bodies[key_of(topic)].append(_body(news))
        return Listener(
            server=self._post.server,
            wanted=bodies,
            seen=seen,
            deliver=self._deliver,
            ready=lambda: len(self._mailbox) < HELD,
        )

    def _deliver(self, bodies: Sequence[str]) -> None:
        self._mailbox.put([Message(0, Kind.NOTIFICATION, body) for body in bodies])


def _body(message: Notification) -> str:
    return encode(notification(message)).decode()
