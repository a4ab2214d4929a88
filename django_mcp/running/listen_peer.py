"""Clients of the modern era that stay: a connection that is there for what changes later on."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from ..protocol.messages import Notification, encode, notification
from ..protocol.topics import Topic
from ..server.function_call import Runner
from ..store.changes.change_log import TopicKey, key_of
from ..store.changes.feed import ChangeListener
from ..store.delivery.records import CallRecord
from ..store.delivery.stream_writer import StreamWriter
from ..store.in_flight.listening import begin_listening, end_listening
from ..store.ledger import ledger
from .peers import StreamPeer
from .send_queue import SendQueue, settle
from .threads import call_on


class ListenPeer(StreamPeer):
    """A :class:`StreamPeer` that may stay until the client goes or the server ends it."""

    can_listen = True

    def __init__(
        self,
        queue: SendQueue,
        writer: StreamWriter,
        call: CallRecord,
        runner: Runner,
        *,
        can_notify: bool,
    ) -> None:
        super().__init__(queue, can_notify=can_notify)
        self._writer = writer
        self._call = call
        self._runner = runner
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._listener: ChangeListener | None = None

    def stop(self) -> None:
        """Let the call end. From any thread."""
        super().stop()
        call_on(self._loop, settle, self._ended)

    async def listen(self, opening: Notification, wanted: Mapping[Topic, Notification]) -> None:
        """Acknowledge, and from then on send the notifications of what changes."""
        self.ends_by_itself = True
        try:
            listener = await self._runner.run_blocking(self._register, wanted)
            # Before anything else on this stream; what changes meanwhile is found by the number.
            self._send([_body(opening)])
            self._listener = listener
            ledger().changes.add(self._listener)
            ledger().wake()
        except BaseException:
            self._leave()
            raise

    async def wait_until_ended(self) -> None:
        """Wait until the call is to end, if it listens."""
        if self._listener is None:
            return
        try:
            await self._ended
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._listener is not None:
            ledger().changes.remove(self._listener)
        if self._writer.wants_rows:
            ledger().run(lambda: end_listening(self._call.id), self._call.partition)

    def _register(self, wanted: Mapping[Topic, Notification]) -> ChangeListener:
        owned = {"owner": ledger().process_id, "channel": ledger().channel()}
        resources = [topic for topic in wanted if topic.uri]
        with self._writer.registering():
            seen = begin_listening(self._call, self._writer, resources, **owned)
        if self._writer.has_ended:
            end_listening(self._call.id)  # its client has gone meanwhile
        # Here, and not on the loop: the keys of many long URIs take a while.
        return self._listens_to(wanted, seen)

    def _listens_to(self, wanted: Mapping[Topic, Notification], seen: int) -> ChangeListener:
        bodies: dict[TopicKey, list[str]] = defaultdict(list)
        for topic, news in wanted.items():
            bodies[key_of(topic)].append(_body(news))
        return ChangeListener(
            server=self._writer.server,
            wanted=bodies,
            seen=seen,
            deliver=self._send,
            ready=lambda: not self._queue.is_full,
        )


def _body(message: Notification) -> str:
    return encode(notification(message)).decode()
