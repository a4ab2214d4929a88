"""The ledger: this process's bookkeeping, in batches, on one thread with one connection.

However many calls run and streams are open here, one small transaction writes what they say,
one query asks what has become of them and one how far their streams are. The thread starts at the
first need, after a fork, and rests while nothing is in flight. Nothing relies on its being stopped
in an orderly way.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from django.db import Error, connections

from ..forks import PerProcess
from ..protocol.topics import Topic
from .access.access_watch import AccessWatch
from .changes.feed import ChangeFeed
from .database import has_collided, is_outage, shorten_lock_wait
from .delivery.outbox import ATTEMPTS, Process, write_batches
from .delivery.records import WriteResult, ignore_result
from .delivery.stream_readers import StreamReaders
from .delivery.stream_writer import StreamWriter, WriteBatch
from .doorbell import FORGET, Doorbell
from .in_flight.recovery import Recovery
from .in_flight.running_requests import RunningRequest, RunningRequests, StopReason
from .sessions import session_cache
from .sessions.session_use import SessionUse
from .sweep import Sweep

logger = logging.getLogger("django_mcp.store")

PAUSE_SECONDS: Final = 0.5
"""Seconds between two looks while something is in flight; a wake-up comes sooner."""

SEND_UNWRITTEN_SECONDS: Final = 2.0
"""Seconds after which what cannot be written is sent on the connection that waits for it."""


class Ledger:
    """The bookkeeping of one process. Everything but :meth:`tick` is safe from any thread."""

    def __init__(self, process_id: str | None = None) -> None:
        self.process_id = process_id or secrets.token_hex(16)
        forget = session_cache.memory().clear
        self.doorbell = Doorbell(self.process_id, self.look_now, self._look_for_changes, forget)
        self.readers = StreamReaders(lambda: self.doorbell.channel)
        self.access_watch = AccessWatch()
        self.requests = RunningRequests(self.process_id, self.access_watch)
        self.changes = ChangeFeed(self.wake_everybody)
        self.recovery = Recovery()
        self.sweep = Sweep()
        self.use = SessionUse()
        self._lock = threading.Lock()
        self._to_write: dict[StreamWriter, None] = {}
        self._is_wake_planned = False
        """Whether the thread comes by itself for those whose moment has not come yet."""
        self._jobs: deque[Callable[[], None]] = deque()
        self._awake = threading.Event()
        self._has_activity = False
        self._is_due = False
        self.is_resting = True
        """Whether its thread waits to be woken: it does not come by itself."""
        self._started = False
        self._thread: threading.Thread | None = None
        self._closing = False
        self._looked = float("-inf")
        self._asked = float("-inf")
        self._failures = 0
        self._is_writing = False

    def channel(self) -> str:
        """Return the channel by which other processes wake this one."""
        self._start()
        return self.doorbell.channel

    def submit(self, writer: StreamWriter) -> None:
        """Write what ``writer`` has to write, once it is due."""
        with self._lock:
            self._to_write[writer] = None
            if writer.write_at and self._is_wake_planned:
                return
            self._is_wake_planned = True
        self.wake()

    def touch(self, session_id: str) -> None:
        """Note that a session has been used."""
        self.use.note(session_id)
        self.note_activity()

    def note_activity(self) -> None:
        """Recover what dead processes left, and clean: the database is in use. From any thread."""
        self._has_activity = True
        if self.is_resting:
            self.start_looking()

    def add_request(self, running: RunningRequest) -> None:
        """Watch a call in flight. From any thread."""
        self.requests.add(running)
        if self.is_resting:
            self.start_looking()

    def run(self, job: Callable[[], None], partition: str | None = None) -> None:
        """Run something small that needs the database, soon, with nobody waiting for it.

        ``partition`` is where, unless it is the present one.
        """
        self._jobs.append(job)
        self.wake()

    def write_use(self) -> None:
        """Write soon how sessions have been used, which otherwise waits for others to come."""
        if self.use:
            self.run(lambda: self.use.write(at_once=True))

    def look_now(self, partition: str | None = None) -> None:
        """Look at once: there is something to read; in one ``partition``, or in whatever one."""
        self._is_due = True
        self.wake()

    def publish_later(self, server: str, topics: Iterable[Topic], partition: str = "") -> None:
        """Write soon that topics have changed, for a thread that cannot do so itself.

        It has one partition; ``partition`` is for the bookkeeping of several, called the same way.
        """
        self.changes.publish_later(server, topics)
        self.wake()

    def wake_everybody(self) -> None:
        """Tell all processes that something has changed."""
        if self._started:
            self.doorbell.wake_everybody()
        else:
            self.doorbell.wake_everybody_once()

    def clear_session_caches(self) -> None:
        """Tell all processes that a session is not any more as they may remember it."""
        if self._started:
            self.doorbell.clear_session_caches()
        else:
            self.doorbell.wake_everybody_once(FORGET)

    def wake(self) -> None:
        """Start the thread, or wake it up."""
        self._start()
        self._awake.set()

    def start_looking(self) -> None:
        """Let the thread look from time to time, as something is in flight now."""
        if self.is_resting:
            self.is_resting = False
            self.wake()

    def tick(self) -> None:
        """Do everything that is due. Called by the thread; by hand in tests."""
        try:
            self._look_after_rows()
        finally:
            # Last, and no oftener: users may be in another database, which may be away. And also
            # if this one is: whoever goes on while nobody can be asked does not go on for long.
            if time.monotonic() - self._asked >= PAUSE_SECONDS:
                self._asked = time.monotonic()
                self.access_watch.look()

    def _look_after_rows(self) -> None:
        if self._has_activity:
            self._has_activity = False
            self.recovery.note_activity()
            self.sweep.note_activity()
        self._write()
        if self._is_due or time.monotonic() - self._looked >= PAUSE_SECONDS:
            self._is_due = False
            self._looked = time.monotonic()
            # First what needs no database, which may be away.
            self.requests.want_rows_for_long_calls()
            self._write()
            self.use.write()
            self.requests.look()
            self.requests.renew()
            if self.readers or self.requests.has_rows:
                self.recovery.note_activity()
            self.doorbell.wake(self.recovery.tick())
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
            self._thread = threading.Thread(target=self._run, name="mcp-ledger", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        shorten_lock_wait()
        is_quiet = False
        while not self._closing:
            # Not before a whole pause in which there was nothing: calls that come and go would
            # wake it one by one. Set before it is asked whether there is anything: whoever adds
            # something after that finds it set, and wakes the thread.
            self.is_resting = is_quiet
            is_busy = self._is_busy()
            self.is_resting = is_quiet and not is_busy
            was_woken = self._awake.wait(None if self.is_resting else self._pause())
            is_quiet = not (is_busy or was_woken)
            self._awake.clear()
            try:
                self.tick()
            except Error as error:
                self._log_failure(error)
                time.sleep(PAUSE_SECONDS)
            except Exception:
                logger.exception("The bookkeeping failed; it goes on")
                time.sleep(PAUSE_SECONDS)
        # What cannot be written any more is as lost as if the process had been killed.
        with suppress(Exception):
            self.use.write(at_once=True)
            self._write()
        connections.close_all()

    def _pause(self) -> float:
        """Return how many seconds the thread may sleep, unless it is woken."""
        with self._lock:
            moments = [
                writer.write_at - time.monotonic() for writer in self._to_write if writer.write_at
            ]
        return max(0, min(PAUSE_SECONDS, self.changes.pause, self.sweep.pause, *moments))

    def _is_busy(self) -> bool:
        in_flight = self.requests or self.readers or self.changes or self.recovery or self.sweep
        return bool(in_flight or self._to_write or self.use or self._has_activity or self._jobs)

    def _look_for_changes(self) -> None:
        self.changes.look_soon()
        self.wake()

    @property
    def is_writing(self) -> bool:
        """Whether there is something that is still to be written."""
        return bool(self._to_write or self._jobs or self._is_writing)

    def _write(self) -> None:
        self._is_writing = True
        try:
            self._run_jobs()
            self._write_streams()
        finally:
            self._is_writing = False

    def _write_streams(self) -> None:
        now = time.monotonic()
        with self._lock:
            writers = [writer for writer in self._to_write if writer.write_at <= now]
            for writer in writers:
                del self._to_write[writer]
            self._is_wake_planned = bool(self._to_write)
        batches = [batch for writer in writers if not (batch := writer.take()).empty]
        if not batches:
            return
        self.sweep.note_activity()
        for batch, written in zip(batches, self._write_batches(batches), strict=True):
            if isinstance(written, WriteResult):
                self._note_written(batch, written)
            else:
                self._retry_later(batch, written)

    def _write_batches(self, batches: list[WriteBatch]) -> list[WriteResult | Exception]:
        try:
            return write_batches(batches, Process(self.process_id, self.doorbell.channel))
        except Exception:
            with self._lock:
                for batch in batches:
                    batch.writer.put_back(batch)
                    self._to_write[batch.writer] = None
            raise

    def _note_written(self, batch: WriteBatch, written: WriteResult) -> None:
        writer = batch.writer
        self._failures, writer.failing_since = 0, None
        if batch.is_unsure:
            self.submit(writer)  # for what came after it
        writer.has_rows, writer.stored = not written.stream_has_ended, batch.next_seq - 1
        for call in written.cancelled:
            # Before it had a row, at another process. Those that write are calls which run here.
            assert isinstance(call, RunningRequest)
            call.stop(StopReason.CANCELLED)
        # First: it may add the reader that is then given what was written.
        writer.on_written(written)
        if written.is_deleted:
            ends = [message for message, call in batch.messages if call]
            self.readers.conclude(writer.id, ends, closed=batch.closes)
        self.readers.offer(writer.id, written.messages, epoch=writer.epoch, closed=batch.closes)
        if writer.reader_channel != self.doorbell.channel:
            self.doorbell.wake([writer.reader_channel])
        if batch.closes:
            # They know each other: left so, they would wait for the garbage collector.
            writer.on_written = ignore_result

    def _retry_later(self, batch: WriteBatch, error: Exception) -> None:
        """Try again later; how the calls ended is sent on their client's connection anyway."""
        writer = batch.writer
        if isinstance(error, Error):
            self._log_failure(error)
        else:
            logger.error("What a call says has no form in the database", exc_info=error)
        if batch.attempts >= ATTEMPTS:
            if batch.is_reduced:
                self._give_up(batch)
                return
            batch.attempts = 0
            writer.drop_contents(batch)
        writer.put_back(batch)
        with self._lock:
            self._to_write[writer] = None
        if is_outage(error):
            writer.failing_since = writer.failing_since or time.monotonic()
            rest = writer.unwritten_end()
            if rest and time.monotonic() - writer.failing_since >= SEND_UNWRITTEN_SECONDS:
                # Not before the end: who lost the connection then could not come back for more.
                writer.on_written(WriteResult())
                self.readers.offer(writer.id, rest, epoch=writer.epoch, closed=True)

    def _give_up(self, batch: WriteBatch) -> None:
        """Go on without a POST's rows: not even how its calls have ended could be written."""
        logger.error("The database takes nothing of a call")
        ends = [message for message, call in batch.messages if call]
        batch.writer.on_written(WriteResult(stream_has_ended=True, is_refused=True))
        self.readers.conclude(batch.writer.id, ends, closed=batch.closes)

    def _log_failure(self, error: Exception) -> None:
        """Live on without the database; say so once, unless only a connection had broken."""
        if not has_collided(error):
            self._failures += 1
            level = logging.ERROR if self._failures == 2 else logging.DEBUG
            logger.log(level, "The database cannot be used; what is waiting waits on: %s", error)
            connections.close_all()

    def _run_jobs(self) -> None:
        while self._jobs:
            job = self._jobs.popleft()
            try:
                job()
            except Error as error:
                if not (is_outage(error) or has_collided(error)):
                    # It would fail again, and keep the others waiting.
                    logger.error("The database does not take a small job", exc_info=error)
                    continue
                self._jobs.appendleft(job)
                self._log_failure(error)
                return


def install(make: Callable[[], Ledger]) -> None:
    """Have ``make`` make the ledgers of processes that have none yet."""
    global _make
    _make = make


_make: Callable[[], Ledger] = Ledger
ledger: Final = PerProcess(lambda: _make())
"""Returns this process's ledger; a fork gets one of its own."""


def close_ledger() -> None:
    """End this process's ledger, if there is one; the next need starts another."""
    found = ledger.forget()
    if found is not None:
        found.close()
