"""A project made of a page's files, in a directory of its own, and the commands that run in it."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

from .markdown import ROOT, Snippet

SECONDS = 120
"""Longest that a command may take, or a server needs to listen."""
PORT = "8000"
"""What the pages write; a free port takes its place."""
RUNNER = Path(__file__).with_name("runner.py")
CHECK = "call_command('check', fail_level='WARNING')"


class SnippetFailed(AssertionError):
    """A snippet did not do what its page says."""


class Project:
    """What a page builds and runs."""

    def __init__(self, root: Path, logs: Path, *, port: int) -> None:
        self.root = root
        self.logs = logs
        self.port = port
        self.settings = "mysite.settings"
        self._servers: list[subprocess.Popen[bytes]] = []
        self._waiting: list[Snippet] = []
        self._modules: set[str] = set()

    def play(self, snippet: Snippet) -> None:
        """Do what a snippet says."""
        if snippet.directive in ("file", "append"):
            self.settle()
            self._write(snippet)
        elif snippet.directive == "server":
            self.settle()
            self._serve(snippet)
        elif snippet.directive == "run" and snippet.language == "python":
            self._waiting.append(snippet)
        elif snippet.directive == "run":
            self.settle()
            self._console(snippet)

    def settle(self) -> None:
        """Run the Python that has gathered: in one process, since starting one takes the time."""
        if not self._waiting:
            return
        files = [self._numbered(index, snippet) for index, snippet in enumerate(self._waiting)]
        where = self._waiting[0].where
        self._waiting = []
        self._run([sys.executable, str(RUNNER), self.settings, *files], where)

    def close(self) -> None:
        """Stop the servers."""
        for server in self._servers:
            server.terminate()
        for server in self._servers:
            try:
                server.wait(SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        self._servers = []

    def check(self, where: str) -> None:
        """Let Django check the project, and import every module that the page has written."""
        script = ["from django.core.management import call_command", CHECK]
        script += [f"import {module}" for module in sorted(self._modules)]
        file = self._scratch("check.py", "\n".join(script))
        self._run([sys.executable, str(RUNNER), self.settings, file], where)

    def _write(self, snippet: Snippet) -> None:
        path = self.root / snippet.argument
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8") if snippet.directive == "append" else ""
        path.write_text(before + self._ported(snippet.code), encoding="utf-8")
        if snippet.language == "python" and (path.parent / "__init__.py").exists():
            self._modules.add(snippet.argument.removesuffix(".py").replace("/", "."))

    def _console(self, snippet: Snippet) -> None:
        commands, expected = [], []
        for line in snippet.code.splitlines():
            if line.startswith("$ "):
                commands.append(self._ported(line[2:]))
            elif line.strip():
                expected.append(line)
        output = self._run(["bash", "-ec", "\n".join(commands)], snippet.where)
        _check_output(output, expected, snippet.where)

    def _serve(self, snippet: Snippet) -> None:
        command = shlex.split(self._ported(snippet.code.strip().removeprefix("$ ")))
        # The autoreloader would serve from a process that is not ours to stop.
        if "runserver" in command:
            command += ["--noreload", str(self.port)]
        elif "demo" in command:
            command += ["--noreload"]
        log = self.logs / f"server-{len(self._servers)}.log"
        with log.open("wb") as sink:
            server = subprocess.Popen(
                command, cwd=self.root, env=self._environment(), stdout=sink, stderr=sink
            )
        self._servers.append(server)
        deadline = time.monotonic() + SECONDS
        while not _listens(self.port):
            if server.poll() is not None or time.monotonic() > deadline:
                raise SnippetFailed(f"{snippet.where}: no server\n{log.read_text()}")
            time.sleep(0.05)

    def _run(self, command: list[str], where: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            raise SnippetFailed(f"{where}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DJANGO_", "PYTEST_", "DATABASE_", "COV_"))
        }
        return inherited | {
            # `python` on a page is the one that runs the tests.
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{inherited.get('PATH', '')}",
            "PYTHONPATH": str(ROOT),
            "PORT": str(self.port),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
        }

    def _ported(self, text: str) -> str:
        return text.replace(PORT, str(self.port))

    def _numbered(self, index: int, snippet: Snippet) -> str:
        # As many empty lines above as on the page, so that tracebacks name its lines.
        name = f"{snippet.page.replace('/', '-')}-{index}.py"
        return self._scratch(name, "\n" * snippet.line + self._ported(snippet.code))

    def _scratch(self, name: str, text: str) -> str:
        path = self.logs / name
        path.write_text(text, encoding="utf-8")
        return str(path)


def _check_output(output: str, expected: list[str], where: str) -> None:
    """Check that the expected lines occur in this order; ``...`` stands for anything."""
    lines = iter(output.splitlines())
    for line in expected:
        pattern = re.compile(".*".join(re.escape(part) for part in line.strip().split("...")))
        if not any(pattern.fullmatch(given.strip()) for given in lines):
            raise SnippetFailed(f"{where}: {line!r} is not (or not there) in\n{output}")


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
