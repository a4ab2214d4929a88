"""The official clients, each as a function from an address to what it saw there."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import nodejs

from . import python_client, python_conversation

TYPESCRIPT = Path(__file__).resolve().parent / "ts"
OLDEST_NODE = 20
SECONDS = 120

Story = dict[str, Any]
"""For every step of a walk or a conversation what the client received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A client in one of its ways to connect, and the revision that it ends up with."""

    name: str
    revision: str
    walk: Callable[[str], Story]
    """Look at everything that the bookshop has; the story has the HTTP traffic as well."""
    converse: Callable[[str, Collection[str]], Story]
    """Let the library speak, ask and tell of changes, but for steps that are named."""
    needs_node: bool = False
    hides_not_found: bool = False
    """Whether it tells of the legacy code for an unknown resource as the modern one."""

    @property
    def modern(self) -> bool:
        """Whether it speaks without sessions."""
        return self.revision >= "2026"

    @property
    def not_found(self) -> int:
        """The error code by which it tells of an unknown resource."""
        return -32602 if self.modern or self.hides_not_found else -32002


def walk_in_python(url: str, *, mode: str) -> Story:
    """Walk with the Python SDK."""
    return asyncio.run(python_client.walk(url, mode))


def converse_in_python(url: str, without: Collection[str], *, mode: str) -> Story:
    """Converse with the Python SDK."""
    return asyncio.run(python_conversation.converse(url, mode, without))


def run_typescript(
    url: str, without: Collection[str] = (), *, script: str, mode: str, what: str
) -> Story:
    """Walk or converse with a TypeScript client; skip without Node.js, but never in CI."""
    done = subprocess.run(
        [find_node(), script, url, mode, what, *without],
        cwd=TYPESCRIPT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, done.stdout.splitlines())
    return {line["step"]: line.get("value") for line in lines}


def find_node() -> str:
    try:
        node = nodejs.node(TYPESCRIPT, oldest=OLDEST_NODE)
        nodejs.install(TYPESCRIPT)
    except nodejs.NodeError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have it: {error}")
        pytest.skip(str(error))
    return node


def _python(name: str, mode: str, revision: str) -> Peer:
    return Peer(
        name=name,
        revision=revision,
        walk=partial(walk_in_python, mode=mode),
        converse=partial(converse_in_python, mode=mode),
    )


def _typescript(name: str, script: str, mode: str, revision: str) -> Peer:
    run = partial(run_typescript, script=script, mode=mode)
    return Peer(
        name=name,
        revision=revision,
        walk=partial(run, what="walk"),
        converse=partial(run, what="converse"),
        needs_node=True,
        hides_not_found=script == "client.mjs",
    )


PEERS = [
    _python("python-legacy", "legacy", "2025-11-25"),
    _python("python-auto", "auto", "2026-07-28"),
    _typescript("typescript-1", "sdk.mjs", "legacy", "2025-11-25"),
    _typescript("typescript-2-legacy", "client.mjs", "legacy", "2025-11-25"),
    _typescript("typescript-2-auto", "client.mjs", "auto", "2026-07-28"),
    _typescript("typescript-2-pinned", "client.mjs", "2026-07-28", "2026-07-28"),
]
