"""Writers of all kinds, and how to have them at work at the same moment as somebody else."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import DatabaseError, connections

from django_mcp.auth import Principal
from django_mcp.models import PendingRequest
from django_mcp.protocol.errors import SessionNotFound
from django_mcp.store.database import has_collided
from django_mcp.store.delivery import outbox
from django_mcp.store.delivery.outbox import write_batches
from django_mcp.store.delivery.records import QuestionRecord

from .visiting import ALIVE, NOBODY, Running, Visit, resource

BOUND = 20
A_WHILE = 0.5
"""Seconds for somebody to run into a lock: too few would find too little, and fail nothing."""


def at_once(*works: Callable[[], Any], bound: float = BOUND) -> list[Any]:
    """Run each on a thread of its own, beginning together; return what they return."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        try:
            start.wait(BOUND)
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return [each.result(bound) for each in [pool.submit(run, work) for work in works]]


def register(visit: Visit) -> tuple[Running, bool]:
    """Give a call its row, as the ledger does; return whether that came too late."""
    running = visit.begin()
    running.post.want_rows()
    return running, running.write().stream_has_ended


class Client:
    """A client that does what leaves rows, and its process, until everything is refused."""

    def __init__(self, seed: int, principal: Principal = NOBODY) -> None:
        self.chance = random.Random(seed)
        self.visit = Visit(principal)
        self.stream = self.visit.listen().pk
        self.running: list[Running] = []
        self.refused = 0
        self.collided = 0

    def work(self) -> None:
        """Go on until nothing has been accepted for a while."""
        acts = (self.call, self.speak, self.ask, self.end, self.subscribe, self.cancel, self.hear)
        end = time.monotonic() + BOUND
        while self.refused < 20:
            assert time.monotonic() < end
            try:
                accepted = self.chance.choice(acts)()
            except SessionNotFound:
                accepted = False
            self.refused = 0 if accepted else self.refused + 1

    def call(self) -> bool:
        running = self.visit.begin(number=self.chance.random()).say()
        self.running.append(running)
        return self._write(running)

    def speak(self) -> bool:
        return any(self._write(each.say()) for each in self.running[:1])

    def ask(self) -> bool:
        for each in self.running[:1]:
            each.post.ask(QuestionRecord(each.call, "elicitation/create", {"message": "?"}, 60))
            return self._write(each)
        return False

    def end(self) -> bool:
        ended, self.running = self.running[:1], self.running[1:]
        for each in ended:
            each.post.end(each.call, PendingRequest.State.ANSWERED, b"{}")
        return any(self._write(each) for each in ended)

    def subscribe(self) -> bool:
        self.visit.subscribe(resource(self.chance.randrange(50)))
        return True

    def cancel(self) -> bool:
        self.visit.cancel(self.chance.random())
        return False

    def hear(self) -> bool:
        return outbox.write_notifications(self.stream, ["{}"]) is not None

    def _write(self, running: Running) -> bool:
        """Write as the ledger does, which tries again where others were in the way."""
        batch = running.post.take()
        while isinstance(found := write_batches([batch], ALIVE)[0], DatabaseError):
            assert has_collided(found), found
            self.collided += 1
        if found.stream_has_ended and running in self.running:
            self.running.remove(running)
        return not found.stream_has_ended
