"""An environment of its own for each peer, from the registries, in a directory that git ignores.

An environment is made once and kept until what it consists of changes, or until somebody removes
the directory. What cannot be made is reported with its reason, never left out in silence.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / ".bench"
SCRIPTS = Path(__file__).resolve().parent / "projects" / "peers" / "typescript"
SECONDS = 900
PRODUCTION = ("uvicorn", "uvloop", "httptools")
"""What `uvicorn[standard]` would bring of use: the same fast loop and parser for everybody."""


OWN = "django_mcp, bare"
"""What our own environment is called in the figures."""


class Unavailable(Exception):
    """The environment cannot be made here; the message says why."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Packages of PyPI, or of npm."""

    name: str
    packages: tuple[str, ...]
    is_node: bool = False

    @property
    def directory(self) -> Path:
        """Where it is."""
        return CACHE / self.name

    def prepare(self) -> None:
        """Make it if it is not there; raise :class:`Unavailable` if that cannot be."""
        if self.is_node:
            # Node looks for packages beside the script that imports them.
            shutil.copytree(SCRIPTS, self.directory, dirs_exist_ok=True)
        stamp = self.directory / "made-of.json"
        wanted = json.dumps([sys.version, *self.packages])
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"Installing {self.name}: {' '.join(self.packages)}", flush=True)
        self.directory.mkdir(parents=True, exist_ok=True)
        if self.is_node:
            _run(["npm", "install", "--silent", "--no-fund", "--no-audit", *self.packages], self)
        else:
            venv.create(self.directory, with_pip=True, clear=True)
            options = ["--quiet", "--disable-pip-version-check"]
            _run([str(self.python), "-m", "pip", "install", *options, *self.packages], self)
        stamp.write_text(wanted)

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.directory / "bin" / "python"

    def versions(self) -> dict[str, str]:
        """Return name and version of what it was asked for."""
        if self.is_node:
            listed = json.loads(_run(["npm", "ls", "--json", "--depth=0"], self))
            return {name: each["version"] for name, each in listed["dependencies"].items()}
        listed = json.loads(_run([str(self.python), "-m", "pip", "list", "--format=json"], self))
        found = {each["name"].lower(): each["version"] for each in listed}
        names = sorted({_plain(each) for each in self.packages} | {"mcp", "django"})
        return {name: found[name] for name in names if name in found}


ENVIRONMENTS = {
    each.name: each
    for each in (
        Environment("sdk", ("mcp>=2", *PRODUCTION)),
        Environment("fastmcp", ("fastmcp", *PRODUCTION)),
        Environment("mcpz", ("django-mcpz", "gunicorn", "psycopg[binary]")),
        # It imports what the SDK no longer has since version 2.
        Environment(
            "django-mcp-server", ("django-mcp-server", "mcp<2", "gunicorn", "psycopg[binary]")
        ),
        Environment("bolt", ("bolt-mcp", "psycopg[binary]")),
        Environment("typescript-1", ("@modelcontextprotocol/sdk", "zod"), is_node=True),
        Environment(
            "typescript-2",
            ("@modelcontextprotocol/server", "@modelcontextprotocol/node", "zod"),
            is_node=True,
        ),
    )
}


def own_versions() -> dict[str, str]:
    """Return the versions of what this process, and our own servers, run with."""
    names = ("django", "gunicorn", "uvicorn", "uvloop", "httptools", "granian", "daphne")
    drivers = ("psycopg", "mysqlclient", "channels", "channels-redis", "pydantic", "mcp-types")
    found = {}
    for name in ("django-mcp-endpoints", *names, *drivers):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def _plain(requirement: str) -> str:
    return requirement.partition("[")[0].partition("<")[0].partition(">")[0].lower()


def _run(command: list[str], environment: Environment) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=environment.directory,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(str(error)) from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise Unavailable(" ".join(last) or f"{command[0]} failed")
    return done.stdout
