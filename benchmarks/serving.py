"""Server processes on a core of their own, and what the kernel says that they use."""

from __future__ import annotations

import functools
import http.client
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers import CHECKOUT, HOST, free_port

from .machine import TICK

PROJECTS = Path(__file__).resolve().parent / "projects"
START_SECONDS = 60
STOP_SECONDS = 10


class Failed(Exception):
    """A server does not do what it should; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class Use:
    """What all processes of a server hold and have used."""

    seconds: float
    memory: int
    """Resident bytes."""
    threads: int


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def use(self) -> Use:
        """Look at it and its children."""
        found = [_use(pid) for pid in _processes(self.process.pid)]
        return Use(
            sum(each.seconds for each in found),
            sum(each.memory for each in found),
            sum(each.threads for each in found),
        )

    def busiest(self) -> int:
        """Return which of its processes has worked most: whoever answers, not who watches it."""
        return max(_processes(self.process.pid), key=lambda pid: _use(pid).seconds)

    def settled(self, pause: float) -> Use:
        """Look again and again until its memory stays the same from one look to the next."""
        before = self.use()
        for _ in range(60):
            time.sleep(pause)
            now = self.use()
            if abs(now.memory - before.memory) < 64 * 1024:
                break
            before = now
        return now

    def tail(self) -> str:
        """Return the end of its log."""
        return self.log.read_text(errors="replace")[-2000:]


@contextmanager
def serving(
    command: Sequence[str], variables: Mapping[str, str], core: int, log: Path
) -> Iterator[Server]:
    """Run a server for as long as a block lasts, on one core."""
    port = free_port()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [word.replace("{port}", str(port)) for word in command],
            cwd=PROJECTS,
            env=os.environ | environment() | dict(variables),
            stdout=output,
            stderr=subprocess.STDOUT,
            # Its children are found by its session, and end with its group.
            start_new_session=True,
            preexec_fn=functools.partial(os.sched_setaffinity, 0, {core}),
        )
    server = Server(port, process, log)
    try:
        _wait(server)
        yield server
    finally:
        _stop(process)


def environment() -> dict[str, str]:
    """Return the variables under which the projects are found."""
    return {
        "PYTHONPATH": os.pathsep.join(map(str, [PROJECTS, CHECKOUT])),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NODE_ENV": "production",
    }


def _wait(server: Server) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _answers(server.port):
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise Failed(f"It does not start:\n{server.tail()}")
        time.sleep(0.05)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=START_SECONDS)
    try:
        connection.request("POST", "/mcp", b"{}", {"Content-Type": "application/json"})
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(STOP_SECONDS)


def _processes(session: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session:
                    yield int(entry.name)


def _use(pid: int) -> Use:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # What children that have ended have used counts as well.
        ticks = sum(int(each) for each in fields[11:15])
        pages = int(fields[21])
        return Use(ticks / TICK, pages * os.sysconf("SC_PAGE_SIZE"), int(fields[17]))
    return Use(0, 0, 0)
