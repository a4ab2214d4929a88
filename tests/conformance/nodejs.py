"""Installs the npm projects of the tests, each as its lock file says, and finds a Node.js."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

INSTALL_SECONDS = 300


class NodeError(Exception):
    """Node.js or npm is missing, too old, or a command of theirs failed."""


def install(project: Path) -> None:
    """Install what the lock file says, unless that has been done.

    No package has to run a script: where a project brings its own Node.js, that is a plain file
    in a package of its platform.
    """
    with (project / "package-lock.json").open() as lock_file:
        # Test processes that run side by side would install into the same directory.
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        if not _is_current(project):
            run([npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], project)


def _is_current(project: Path) -> bool:
    installed = project / "node_modules" / ".package-lock.json"
    if not installed.exists():
        return False
    return installed.stat().st_mtime >= (project / "package-lock.json").stat().st_mtime


def npm() -> str:
    """The path of npm."""
    path = shutil.which("npm")
    if path is None:
        raise NodeError("npm is not installed; it comes with Node.js.")
    return path


def node(project: Path, *, oldest: int) -> str:
    """A Node.js of at least the major version `oldest`: the project's own, else the system's."""
    own = next(project.glob("node_modules/node-*/bin/node"), None)
    if own is not None:
        return str(own)
    system = shutil.which("node")
    if system is None or _major_version(system, project) < oldest:
        raise NodeError(f"Node.js {oldest} or newer is not installed.")
    return system


def _major_version(program: str, project: Path) -> int:
    return int(run([program, "--version"], project).lstrip("v").split(".")[0])


def run(
    command: Sequence[str],
    project: Path,
    *,
    seconds: float = INSTALL_SECONDS,
    good: Sequence[int] = (0,),
) -> str:
    """Run a command in the project's directory; give its output, errors included."""
    done = subprocess.run(
        command,
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode not in good:
        raise NodeError(f"{' '.join(command)} failed:\n{done.stdout}")
    return done.stdout
