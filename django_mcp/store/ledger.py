"""The ledger: this process's bookkeeping, in batches, on one thread with one connection.

However many calls run and streams are open here, one small transaction writes what they want kept,
one query asks what has become of them and one how far their streams are. The thread starts at the
first need, after a fork, and rests while nothing is in flight. Nothing relies on its being stopped
in an orderly way.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from django.db import Error, connections

from ..forks import PerProcess
from ..protocol.topics import Topic
from .access.access_watch import Audience
from .changes.feed import Changes
from .database import has_collided, is_outage, wait_briefly
from .delivery.outbox import Process, keep
from .delivery.records import Batch, Kept
from .delivery.stream_readers import Readers
from .delivery.stream_writer import Post
from .doorbell import FORGET, Doorbell
from .requests.recovery import Settling
from .requests.running_requests import Requests
from .sessions import session_cache
from .sessions.session_rows import note_use
from .sweep import Sweep

logger = logging.getLogger("django_mcp.store")

PAUSE: Final = 0.5
"""Seconds between two looks while something is in flight; a ring comes sooner."""

DIRECTLY: Final = 2.0
"""Seconds after which what cannot be written is sent on the connection that waits for it."""
REFUSALS: Final = 10
"""After so many attempts, what a database that is there does not take is left out; after as many
more without it, the calls are given up.
"""


class Ledger:
    """The bookkeeping of one process. Everything but :meth:`tick` is safe from any thread."""

    def __init__(self) -> None:
        self.process_id = secrets.token_hex(16)
        forget = session_cache.memory().clear
        self.doorbell = Doorbell(self.process_id, self.ring, self._changed, forget)
        self.readers = Readers(lambda: self.doorbell.channel)
        self.audience = Audience()
        self.requests = Requests(self.process_id, self.audience)
        self.changes = Changes(self.ring_everybody)
        self.settling = Settling()
        self.sweep = Sweep()
        self._lock = threading.Lock()
        self._wanting: dict[Post, None] = {}
        self._looks_soon = False
        """Whether the thread comes by itself for those whose moment has not come yet."""
        self._used: Counter[str] = Counter()
        self._errands: deque[Callable[[], None]] = deque()
        self._awake = threading.Event()
        self._rung = False
        self._resting = True
        self._started = False
        self._thread: threading.Thread | None = None
        self._closing = False
        self._looked = float("-inf")
        self._asked = float("-inf")
        self._failures = 0
        self._is_writing = False

    def channel(self) -> str:
        """Return where other processes can ring for this one."""
        self._start()
        return self.doorbell.channel

    def submit(self, post: Post) -> None:
        """Write what ``post`` wants kept, once it is due."""
        with self._lock:
            self._wanting[post] = None
            if post.due and self._looks_soon:
                return
            self._looks_soon = True
        self.wake()

    def touch(self, session_id: str) -> None:
        """Note that a session has been used, at the next look."""
        with self._lock:
            self._used[session_id] += 1
        self.stir()

    def stir(self) -> None:
        """See to what the dead have left and to old rows, as somebody uses the database anyway."""
        self.settling.stir()
        self.sweep.stir()
        self.nudge()

    def run(self, errand: Callable[[], None]) -> None:
        """Run something small that needs the database, soon, with nobody waiting for it."""
        self._errands.append(errand)
        self.wake()

    def ring(self) -> None:
        """Look at once: there is something to read."""
        self._rung = True
        self.wake()

    def announce(self, server: str, topics: Iterable[Topic]) -> None:
        """Write soon that topics have changed, for a thread that cannot do so itself."""
        self.changes.announce(server, topics)
        self.wake()

    def ring_everybody(self) -> None:
        """Tell all processes that something has changed."""
        if self._started:
            self.doorbell.ring_everybody()
        else:
            self.doorbell.ring_once()

    def ring_to_forget(self) -> None:
        """Tell all processes that a session is not any more as they may remember it."""
        if self._started:
            self.doorbell.ring_to_forget()
        else:
            self.doorbell.ring_once(FORGET)

    def wake(self) -> None:
        """Start the thread, or wake it up."""
        self._start()
        self._awake.set()

    def nudge(self) -> None:
        """See to it that the thread looks from time to time, as something is in flight now."""
        if self._resting:
            self._resting = False
            self.wake()

    def tick(self) -> None:
        """Do everything that is due. Called by the thread; by hand in tests."""
        try:
            self._look_after_rows()
        finally:
            # Last, and no oftener: users may be in another database, which may be away. And also
            # if this one is: who stays while nobody can be asked does not stay for long.
            if time.monotonic() - self._asked >= PAUSE:
                self._asked = time.monotonic()
                self.audience.look()

    def _look_after_rows(self) -> None:
        self._write()
        if self._rung or time.monotonic() - self._looked >= PAUSE:
            self._rung = False
            self._looked = time.monotonic()
            # First what needs no database, which may be away.
            self.requests.pulse()
            self._write()
            self._note_use()
            self.requests.look()
            self.requests.renew()
            if self.readers or self.requests.has_rows:
                self.settling.stir()
            self.doorbell.ring(self.settling.tick())
            self.readers.look()
            self._failures = 0
        if self.changes.tick():
            self.readers.look()
        # After everything for which somebody waits.
        self.sweep.tick()

    def close(self) -> None:
        """Write what waits, end the threads and close the connection; tests want that."""
        self._closing = True
        self.doorbell.close()
        self._awake.set()
        if self._thread is not None:
            self._thread.join(5)

    def _start(self) -> None:
        if self._thread is not None:
            return
        with self._lock:
            if self._started or self._closing:
                return
            self._started = True
            self.doorbell.start()
            self._thread = threading.Thread(target=self._live, name="mcp-ledger", daemon=True)
            self._thread.start()

    def _live(self) -> None:
        wait_briefly()
        is_quiet = False
        while not self._closing:
            # Not before a whole pause in which there was nothing: calls that come and go would
            # wake it one by one. Set before it is asked whether there is anything: whoever adds
            # something after that finds it set, and wakes the thread.
            self._resting = is_quiet
            is_busy = self._is_busy()
            self._resting = is_quiet and not is_busy
            was_woken = self._awake.wait(None if self._resting else self._pause())
            is_quiet = not (is_busy or was_woken)
            self._awake.clear()
            try:
                self.tick()
            except Error as error:
                self._bear(error)
                time.sleep(PAUSE)
            except Exception:
                logger.exception("The bookkeeping failed; it goes on")
                time.sleep(PAUSE)
        # What cannot be written any more is as lost as if the process had been killed.
        with suppress(Exception):
            self._note_use()
            self._write()
        connections.close_all()

    def _pause(self) -> float:
        """Return how many seconds the thread may sleep, unless it is woken."""
        with self._lock:
            moments = [post.due - time.monotonic() for post in self._wanting if post.due]
        return max(0, min(PAUSE, self.changes.pause, self.sweep.pause, *moments))

    def _is_busy(self) -> bool:
        in_flight = self.requests or self.readers or self.changes or self.settling or self.sweep
        return bool(in_flight or self._wanting or self._used or self._errands)

    def _changed(self) -> None:
        self.changes.ring()
        self.wake()

    def _note_use(self) -> None:
        with self._lock:
            used, self._used = self._used, Counter()
        try:
            note_use(used)
        except Error:
            with self._lock:
                self._used += used
            raise

    @property
    def is_writing(self) -> bool:
        """Whether there is something that is still to be written."""
        return bool(self._wanting or self._is_writing)

    def _write(self) -> None:
        self._is_writing = True
        try:
            self._run_errands()
            self._write_posts()
        finally:
            self._is_writing = False

    def _write_posts(self) -> None:
        now = time.monotonic()
        with self._lock:
            posts = [post for post in self._wanting if post.due <= now]
            for post in posts:
                del self._wanting[post]
            self._looks_soon = bool(self._wanting)
        batches = [batch for post in posts if not (batch := post.take()).empty]
        if not batches:
            return
        self.sweep.stir()
        for batch, kept in zip(batches, self._keep(batches), strict=True):
            if isinstance(kept, Kept):
                self._note_kept(batch, kept)
            else:
                self._put_off(batch, kept)

    def _keep(self, batches: list[Batch]) -> list[Kept | Error]:
        try:
            return keep(batches, Process(self.process_id, self.doorbell.channel))
        except Exception:
            with self._lock:
                for batch in batches:
                    batch.post.give_back(batch)
                    self._wanting[batch.post] = None
            raise

    def _note_kept(self, batch: Batch, kept: Kept) -> None:
        post = batch.post
        self._failures, post.failing_since = 0, None
        if batch.unsure:
            self.submit(post)  # for what came after it
        post.is_kept, post.stored = not kept.lost, batch.next_seq - 1
        post.listener(kept)
        if kept.gone:
            ends = [message for message, call in batch.messages if call]
            self.readers.conclude(post.id, ends, closed=batch.closes)
        self.readers.offer(post.id, kept.messages, closed=batch.closes)
        if post.reader != self.doorbell.channel:
            self.doorbell.ring([post.reader])

    def _put_off(self, batch: Batch, error: Error) -> None:
        """Try again later; how the calls ended their client hears on its connection anyway."""
        post = batch.post
        self._bear(error)
        if batch.refusals >= REFUSALS:
            if batch.is_abridged:
                self._give_up(batch)
                return
            batch.refusals = 0
            post.abridge(batch)
        post.give_back(batch)
        with self._lock:
            self._wanting[post] = None
        if is_outage(error):
            post.failing_since = post.failing_since or time.monotonic()
            rest = post.rest()
            if rest and time.monotonic() - post.failing_since >= DIRECTLY:
                # Not before the end: who lost the connection then could not come back for more.
                post.listener(Kept())
                self.readers.offer(post.id, rest, closed=True)

    def _give_up(self, batch: Batch) -> None:
        """Let the calls of a POST end: not even that could be written."""
        logger.error("The database takes nothing of a call, which is ended")
        ends = [message for message, call in batch.messages if call]
        batch.post.listener(Kept(lost=True))
        self.readers.conclude(batch.post.id, ends, closed=batch.closes)

    def _bear(self, error: Error) -> None:
        """Live on without the database; say so once, unless only a connection had broken."""
        if not has_collided(error):
            self._failures += 1
            level = logging.ERROR if self._failures == 2 else logging.DEBUG
            logger.log(level, "The database cannot be used; what is waiting waits on: %s", error)
            connections.close_all()

    def _run_errands(self) -> None:
        while self._errands:
            errand = self._errands.popleft()
            try:
                errand()
            except Error as error:
                self._errands.appendleft(errand)
                self._bear(error)
                return


ledger: Final = PerProcess(Ledger)
"""Returns this process's ledger; a fork gets one of its own."""


def close_ledger() -> None:
    """End this process's ledger, if there is one; the next need starts another."""
    found = ledger.forget()
    if found is not None:
        found.close()
