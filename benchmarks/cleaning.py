"""What cleaning costs, and those who write meanwhile, where there are very many dead rows.

    python -m benchmarks.cleaning [--rows 100000]

Makes a test database at ``DATABASE_URL`` (SQLite without it), plants as many dead rows of each
kind, and half as many that are not to go. Then it takes the steps of the sweep while another thread
registers calls and ends them, and does the rest at one go, as the command does. Needs what the
tests need.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import django
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext, setup_databases, teardown_databases
from django.utils import timezone

BATCH = 5_000
STEPS = 200


def plant(number: int, age: timedelta) -> None:
    """Insert sessions that ended so long ago, with a request, a stream and a message each."""
    from django_mcp import models  # noqa: PLC0415 - after setup()

    then = timezone.now() - age
    live = age < timedelta(days=7)
    for start in range(0, number, BATCH):
        count = min(BATCH, number - start)
        sessions = models.Session.objects.bulk_create(
            models.Session(
                key_digest=secrets.token_hex(32),
                server="bench",
                revision="2025-11-25",
                state="ready" if live else "ended",
                last_active=then,
                used_hour=int(then.timestamp()) // 3600,
                expires=timezone.now() + timedelta(days=9),
                ended=None if live else then,
            )
            for _ in range(count)
        )
        streams = models.Stream.objects.bulk_create(
            models.Stream(session=each, next_seq=2, closed=then) for each in sessions
        )
        models.OutgoingMessage.objects.bulk_create(
            models.OutgoingMessage(stream=each, seq=1, kind="response", body="{}" * 100)
            for each in streams
        )
        models.PendingRequest.objects.bulk_create(
            models.PendingRequest(
                session=each.session,
                stream=each,
                server="bench",
                request_id="1",
                method="tools/call",
                state="answered",
                lease_until=then,
                ended=then,
            )
            for each in streams
        )
        models.Subscription.objects.bulk_create(
            models.Subscription(session=each, server="bench", uri="a://b", uri_digest=str(each.pk))
            for each in sessions
        )
        models.Change.objects.bulk_create(
            models.Change(
                server="bench", kind="resource", uri_digest=str(each.pk), serial=1, changed=then
            )
            for each in sessions
        )


class Writer(threading.Thread):
    """Registers a call and ends it, again and again, and notes how long that takes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.took: list[float] = []
        self.done = threading.Event()

    def run(self) -> None:
        """Go on until it is done."""
        from tests.store.visiting import Visit  # noqa: PLC0415 - after setup()

        visit = Visit()
        while not self.done.wait(0.005):
            start = time.perf_counter()
            visit.call().end()
            self.took.append(time.perf_counter() - start)
        connections.close_all()


@contextmanager
def beside_a_writer(title: str) -> Iterator[None]:
    """Say how long writing takes meanwhile."""
    writer = Writer()
    writer.start()
    try:
        yield
    finally:
        writer.done.set()
        writer.join()
        print(f"{title:<34} a call's two transactions: {summary(writer.took)}")


def summary(took: list[float]) -> str:
    """Return median, 99th percentile and maximum in milliseconds."""
    ordered = sorted(each * 1000 for each in took)
    late = ordered[int(len(ordered) * 0.99)]
    return f"median {statistics.median(ordered):.1f}, 99 % {late:.1f}, most {ordered[-1]:.1f} ms"


def timed(work: Callable[[], Any]) -> tuple[float, list[float]]:
    """Return how long something takes, and each of its statements."""
    longest: list[float] = []

    def watch(execute: Any, *arguments: Any) -> Any:
        start = time.perf_counter()
        try:
            return execute(*arguments)
        finally:
            longest.append(time.perf_counter() - start)

    start = time.perf_counter()
    with connection.execute_wrapper(watch):
        work()
    return time.perf_counter() - start, longest


def sweep() -> None:
    """Take steps of the sweep, each when it is due."""
    from django_mcp.store.sweep import Sweep  # noqa: PLC0415 - after setup()

    own, ticks, statements = Sweep(), [], []
    own._round = float("-inf")
    begun = time.perf_counter()
    while len(ticks) < STEPS:
        own.note_activity()
        time.sleep(max(0.001, min(1.0, own.pause)))
        took, found = timed(own.tick)
        if found:
            ticks.append(took)
            statements.append(len(found))
    share = sum(ticks) / (time.perf_counter() - begun)
    print(
        f"a step of the sweep: {summary(ticks)}; at most {max(statements)} statements; "
        f"{share:.0%} of the time"
    )


def prune() -> None:
    """Do what the command does."""
    from django_mcp.store.cleanup import BATCH_ROWS as ROWS  # noqa: PLC0415 - after setup()
    from django_mcp.store.cleanup import cleanup_rules  # noqa: PLC0415

    for kind in cleanup_rules():
        numbers: list[int] = []
        took, found = timed(lambda kind=kind, to=numbers: to.append(kind.forget_all(ROWS)))
        print(
            f"{numbers[0]:>8} {kind.name:<32} {took:6.1f} s in {len(found):>4} statements, "
            f"the longest {max(found) * 1000:.0f} ms"
        )


def analyze() -> None:
    """Let the database count what it has, as it does by itself in time."""
    names = ", ".join(connection.introspection.table_names())
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE TABLE {names}" if connection.vendor == "mysql" else "ANALYZE")


def idle_round() -> None:
    """Look at tables in which nothing is due."""
    from django_mcp.store.cleanup import BATCH_ROWS as ROWS  # noqa: PLC0415 - after setup()
    from django_mcp.store.cleanup import cleanup_rules  # noqa: PLC0415

    for kind in cleanup_rules():
        with CaptureQueriesContext(connection) as queries:
            took, _ = timed(lambda kind=kind: kind.forget(ROWS))
        print(f"  nothing due: {kind.name:<32} {took * 1000:6.1f} ms, {len(queries)} statements")


def main() -> None:
    """Plant, sweep, prune."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        with transaction.atomic():
            plant(options.rows // 2, timedelta(minutes=4))
        analyze()
        idle_round()
        with transaction.atomic():
            plant(options.rows, timedelta(days=9))
        analyze()
        with beside_a_writer("alone"):
            time.sleep(3)
        with beside_a_writer("beside the sweep"):
            sweep()
        with beside_a_writer("beside the command"):
            prune()
    finally:
        teardown_databases(databases, verbosity=0)


if __name__ == "__main__":
    main()
