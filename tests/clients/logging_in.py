"""Clients that others wrote, on their way through a login: how to send each, and what it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.conformance import nodejs
from tests.logins.serving import LoginSite
from tests.support.servers import free_port

from .isolated import own_environment, python_of
from .peers import TYPESCRIPT, find_node

SECONDS = 240
LIFETIME = 5
"""Seconds for which an access token is good: each story outlives several."""
HERE = Path(__file__).resolve().parent / "logins"
PERSON = HERE / "person.py"
REMOTE = Path(__file__).resolve().parent / "remote"
PROGRAM = "node_modules/mcp-remote/dist/proxy.js"


@dataclass(frozen=True)
class Login:
    """What a client told, and what the person was asked."""

    story: dict[str, Any]
    asked: list[dict[str, str]]
    """The query of each URL that was opened."""
    read: list[str]
    """The page that was there."""


@dataclass(frozen=True, kw_only=True)
class LoginClient:
    """A client, and how it is sent."""

    name: str
    script: str
    environment: str = ""
    """The name of a file in requirements/; empty for the interpreter that runs the tests."""
    needs_node: bool = False
    path: str = "/callback"

    def __str__(self) -> str:
        return self.name

    def log_in(self, site: LoginSite, client_id: str, directory: Path) -> Login:
        """Log in, and do what a client does until its login is ended."""
        callback = f"http://127.0.0.1:{free_port()}{self.path}"
        environment = {**own_environment(), **_browser_in(directory), **self._variables(directory)}
        done = subprocess.run(
            [*self._command(), site.origin, client_id, callback, *self._arguments()],
            cwd=TYPESCRIPT if self.script.endswith(".mjs") else HERE,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
        notes = (directory / "visits").read_text().splitlines()
        visits = [json.loads(line) for line in notes]
        return Login(
            json.loads(done.stdout.splitlines()[-1]),
            [dict(parse_qsl(urlsplit(visit["url"]).query)) for visit in visits],
            [visit["read"] for visit in visits],
        )

    def _command(self) -> list[str]:
        if self.script.endswith(".mjs"):
            return [find_node(), self.script]
        python = str(python_of(self.environment)) if self.environment else sys.executable
        return [python, self.script]

    def _arguments(self) -> list[str]:
        return [sys.executable, str(PERSON)] if self.script.endswith(".mjs") else []

    def _variables(self, directory: Path) -> dict[str, str]:
        if not self.needs_node or self.script.endswith(".mjs"):
            return {}
        node = find_node()
        nodejs.install(REMOTE)
        return {
            "NODE": node,
            "MCP_REMOTE": str(REMOTE / PROGRAM),
            "MCP_REMOTE_CONFIG_DIR": str(directory / "mcp-remote"),
        }


LOGIN_CLIENTS = [
    LoginClient(name="python-sdk-2", script="python_sdk_2.py"),
    LoginClient(name="python-sdk-1.30", script="python_sdk_1.py", environment="python-sdk-1.30"),
    LoginClient(name="fastmcp", script="fastmcp_client.py", environment="fastmcp"),
    LoginClient(name="typescript-1", script="login1.mjs", needs_node=True),
    LoginClient(name="typescript-2", script="login2.mjs", needs_node=True),
    LoginClient(
        name="mcp-remote",
        script="through_mcp_remote.py",
        environment="python-sdk-1.30",
        needs_node=True,
        path="/oauth/callback",
    ),
]
TWICE = LoginClient(
    name="python-sdk-1.12", script="python_sdk_1_twice.py", environment="python-sdk-1.12"
)
"""A client whose calls all run twice, so that it cannot tell the story of the others."""


def _browser_in(directory: Path) -> dict[str, str]:
    """Return the variables of a client's process by which the person is its browser.

    Python asks BROWSER for a command, which is not to be waited for; others ask xdg-open, which
    takes the command from there as well, and the `&` for an argument.
    """
    programs = directory / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "xdg-open"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {PERSON} "$1"\n')
    program.chmod(0o755)
    return {
        "BROWSER": f"{program} %s &",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "VISITS": str(directory / "visits"),
        "LIFETIME": str(LIFETIME),
    }
