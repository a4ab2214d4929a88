"""The server processes: started, killed, stopped, continued, with wrong clocks and right ones."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.support.servers import CHECKOUT, HOST, free_port

HERE = Path(__file__).resolve().parent
START_SECONDS = 60
LAST_SECONDS = 10
"""How long a server may take over its end once it was asked to end; after that it is killed."""

COMMANDS = {
    "uvicorn": [
        *["uvicorn", "--log-level", "warning", "--host", HOST, "--port", "{port}"],
        "bazaar.asgi:application",
    ],
    "daphne": ["daphne", "-v", "0", "-b", HOST, "-p", "{port}", "bazaar.asgi:application"],
    "gunicorn": [
        *["gunicorn", "--bind", HOST + ":{port}", "--worker-class", "gthread", "--threads", "32"],
        *["--log-level", "warning", "bazaar.wsgi:application"],
    ],
}
"""How each server is started: the arguments after ``python -m``."""

IN_ONE_PIECE = {"gunicorn"}
"""Those that speak WSGI: no stream, and so no question but those that end a call."""


def has_streams(door: str) -> bool:
    """Return whether there is one of ``SERVER+SERVER`` at least that answers with streams."""
    return not IN_ONE_PIECE.issuperset(door.split("+"))


class Worker:
    """One server process, with its children if it has any. Its port stays the same."""

    def __init__(self, number: int, server: str, environment: Mapping[str, str], log: Path) -> None:
        self.number = number
        self.port = free_port()
        self.log = log
        self._command = [word.format(port=self.port) for word in COMMANDS[server]]
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, clock_offset: float = 0) -> None:
        """Start it; return at once."""
        variables = {**self._environment, "CLOCK_OFFSET": str(clock_offset)}
        with self.log.open("ab") as output:
            # A process group of its own: a killed gunicorn must not leave its children behind.
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self._command],
                cwd=HERE,
                env=variables,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        """Wait until it answers anything at all."""
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise RuntimeError(f"Worker {self.number}:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.05)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to it and its children."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """Kill it, without a warning."""
        self.send_signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(LAST_SECONDS)

    def terminate(self) -> float | None:
        """Ask it to end; return how many seconds that took, ``None`` if it had to be killed."""
        assert self._process is not None
        begun = time.monotonic()
        # The parent alone: it is its own affair to end its children.
        self._process.terminate()
        try:
            self._process.wait(LAST_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        return time.monotonic() - begun

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=START_SECONDS)
        try:
            connection.request("OPTIONS", "/mcp")
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        return True


def environment(**variables: str) -> dict[str, str]:
    """Return the environment in which the site's processes, and those of the suite, run."""
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "bazaar.settings",
        "PYTHONPATH": os.pathsep.join(map(str, [CHECKOUT, HERE])),
        **variables,
    }


def migrate(variables: Mapping[str, str]) -> None:
    """Create the tables."""
    command = [sys.executable, "-m", "django", "migrate", "--run-syncdb", "-v", "0"]
    subprocess.run(command, cwd=HERE, env=variables, check=True, timeout=120)
