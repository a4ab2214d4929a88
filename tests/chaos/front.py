"""The balancer of the suite: goes to the next worker if one is not there, can be told to cut, and
notes how each connection ended and at which worker.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.balancer import Balancer, Passed, served
from tests.support.proxy import HOST, headers_of

from .ledger import Ledger


class Nobody(ConnectionError):
    """No worker takes connections."""


@dataclass(eq=False)
class Flow:
    """One connection that passes."""

    exchange: str
    writer: asyncio.StreamWriter
    passed: Passed | None = None
    was_cut: bool = False
    is_complete: bool = False


class Front(Balancer):
    """Needs no lock: everything but :meth:`cut` happens on its loop."""

    def __init__(self, ports: Sequence[int], ledger: Ledger, *, again: bool = False) -> None:
        super().__init__(ports)
        self.ledger = ledger
        self.again = again
        """A planted fault: send a request again whose worker has broken off."""
        self._flows: dict[asyncio.StreamWriter, Flow] = {}

    def cut(self, share: float, chance: random.Random) -> None:
        """Break a share of the connections that are open now. From any thread."""
        self._loop.call_soon_threadsafe(self._cut, share, chance)

    def _cut(self, share: float, chance: random.Random) -> None:
        for flow in list(self._flows.values()):
            if chance.random() < share:
                flow.was_cut = True
                flow.writer.transport.abort()

    async def _forward(
        self, head: bytes, body: bytes, client: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        flow = Flow(headers_of(head).get(b"x-exchange", b"").decode(), writer)
        self._flows[writer] = flow
        how = "left"
        try:
            while True:
                try:
                    return await super()._forward(head, body, client, writer)
                except (OSError, asyncio.IncompleteReadError):
                    how = "broke"
                    if not self.again or flow.passed is None or flow.passed.status is not None:
                        raise
        except Nobody:
            how = "nobody"
            raise
        finally:
            del self._flows[writer]
            self._note_end(flow, "cut" if flow.was_cut else "complete" if flow.is_complete else how)

    async def _reach(self, passed: Passed) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for _ in self.ports:
            try:
                return await asyncio.open_connection(HOST, self.ports[passed.worker])
            except OSError:
                passed.worker = (passed.worker + 1) % len(self.ports)
        raise Nobody

    async def _reply(
        self,
        passed: Passed,
        cut: object,
        upstream: asyncio.StreamReader,
        client: asyncio.StreamWriter,
    ) -> None:
        flow = self._flows[client]
        flow.passed = passed
        await super()._reply(passed, None, upstream, client)
        flow.is_complete = True

    def _note_end(self, flow: Flow, how: str) -> None:
        key, _, attempt = flow.exchange.partition("/")
        if attempt:
            passed = flow.passed
            self.ledger.note(
                "passed",
                x=key,
                a=int(attempt),
                worker=passed and passed.worker,
                status=passed and passed.status,
                how=how,
            )


@contextmanager
def fronting(ports: Sequence[int], ledger: Ledger, *, again: bool = False) -> Iterator[Front]:
    """Serve in front of workers on these ports, from a thread of its own."""
    front = Front(ports, ledger, again=again)
    with served(front):
        yield front
