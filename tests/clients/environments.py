"""Makes the environments of clients, each with what its file in requirements/ names.

An environment is made once for what that file says, this interpreter and the day below, and found
again by it. Two test processes that need the same one wait for each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements"
ENVIRONMENTS = HERE / ".environments"
NEWEST = "2026-11-23"
"""Nothing newer is installed, so that a client's dependencies stay what they were."""
TOO_NEW = (3, 14)
"""From here on not all clients can be installed."""
INSTALL_SECONDS = 300


class EnvironmentMissing(Exception):
    """An environment could not be made."""


def interpreter(name: str) -> Path:
    """The Python of the environment `name`, which has the client that its requirements say."""
    requirements = REQUIREMENTS / f"{name}.txt"
    said = f"{requirements.read_text()} {NEWEST} {sys.version}"
    directory = ENVIRONMENTS / f"{name}-{hashlib.sha256(said.encode()).hexdigest()[:12]}"
    done = directory / "done"
    ENVIRONMENTS.mkdir(exist_ok=True)
    with (ENVIRONMENTS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            for old in ENVIRONMENTS.glob(f"{name}-{'?' * 12}"):
                shutil.rmtree(old)
            _make(directory, requirements)
            done.touch()
    return directory / "bin" / "python"


def _make(directory: Path, requirements: Path) -> None:
    if find_spec("uv") is None:
        raise EnvironmentMissing("uv is not installed; it is in the dependency group `clients`.")
    python = sys.executable if sys.version_info < TOO_NEW else f"<{'.'.join(map(str, TOO_NEW))}"
    _run("venv", "--no-python-downloads", "--python", python, str(directory))
    target = ("--python", str(directory / "bin" / "python"))
    _run("pip", "install", *target, "--exclude-newer", NEWEST, "--requirements", str(requirements))


def _run(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uv", "--quiet", "--no-config", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        raise EnvironmentMissing(f"uv {' '.join(arguments)} failed:\n{done.stdout}")
