"""Clients that others wrote, in environments of their own: how to send each, and what it cannot."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from .environments import EnvironmentMissing, interpreter
from .tours.steps import STEPS

TOURS = Path(__file__).resolve().parent / "tours"
SECONDS = 240
"""A bound for all steps together, on a busy machine."""

NO_RESUMPTION = "a call of revision 2026-07-28 ends with its stream"
LEVELS = ["debug", "info", "warning", "error"]


@dataclass(frozen=True, kw_only=True)
class IsolatedClient:
    """A client, the steps that it cannot take with the reason for each, and what it speaks."""

    name: str
    environment: str
    """The name of a file in requirements/."""
    script: str
    """The name of a file in tours/."""
    revision: str
    lacks: dict[str, str] = field(default_factory=dict)
    mode: str = "auto"
    door: str = "mount"
    levels: tuple[str, ...] = tuple(LEVELS)
    """The levels of the messages that it is sent; who does not choose one gets no others."""

    def __str__(self) -> str:
        return self.name if self.door == "mount" else f"{self.name}-{self.door}"

    def tour(self, url: str) -> dict[str, Any]:
        """Take all steps at an address, and give what came of each."""
        wanted = [step for step in STEPS if step not in self.lacks]
        done = subprocess.run(
            [str(python_of(self.environment)), f"{self.script}.py", url, self.mode, *wanted],
            cwd=TOURS,
            env=own_environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
        story: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return story


def python_of(environment: str) -> Path:
    """The interpreter of an environment; skip where nothing can be installed, but never in CI."""
    try:
        return interpreter(environment)
    except EnvironmentMissing as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have it: {error}")
        pytest.skip(str(error))


def own_environment() -> dict[str, str]:
    """The variables of a process that is to find nothing but its own."""
    own = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "DJANGO_SETTINGS_MODULE"}
    # CrewAI and others would report to their makers.
    silent = {"OTEL_SDK_DISABLED": "true", "CREWAI_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}
    return {name: value for name, value in os.environ.items() if name not in own} | silent


_NO_QUESTION = "it does not say that it can be asked"
_NO_LOGS = "it has no place for log messages"
_NO_PROGRESS = "it has no place for progress"
_TOOLS_ALONE = "it has tools alone"

FASTMCP = IsolatedClient(
    name="fastmcp",
    environment="fastmcp",
    script="fastmcp_client",
    revision="2026-07-28",
    lacks={"resumption": NO_RESUMPTION},
)
AT_THE_MOUNT = [
    IsolatedClient(
        name="python-sdk-1.30",
        environment="python-sdk-1.30",
        script="python_sdk",
        revision="2025-11-25",
    ),
    IsolatedClient(
        name="python-sdk-1.12",
        environment="python-sdk-1.12",
        script="python_sdk",
        revision="2025-06-18",
        lacks={"resumption": "it does not come back to a stream by itself"},
    ),
    IsolatedClient(
        name="python-sdk-1.9",
        environment="python-sdk-1.9",
        script="python_sdk",
        revision="2025-03-26",
        lacks={
            "question": "revision 2025-03-26 has no elicitation",
            "resumption": "it does not come back to a stream by itself",
        },
    ),
    FASTMCP,
    replace(FASTMCP, name="fastmcp-legacy", mode="legacy", revision="2025-11-25", lacks={}),
    IsolatedClient(
        name="langchain",
        environment="langchain",
        script="langchain_adapter",
        revision="2025-11-25",
        levels=("info", "warning", "error"),
    ),
    IsolatedClient(
        name="pydantic-ai",
        environment="pydantic-ai",
        script="pydantic_ai_toolset",
        revision="2026-07-28",
        lacks={"resumption": NO_RESUMPTION},
    ),
    IsolatedClient(
        name="openai-agents",
        environment="openai-agents",
        script="openai_agents",
        revision="2026-07-28",
        lacks={
            "progress": _NO_PROGRESS,
            "logs": _NO_LOGS,
            "question": _NO_QUESTION,
            "resumption": NO_RESUMPTION,
        },
    ),
    IsolatedClient(
        name="google-adk",
        environment="google-adk",
        script="google_adk",
        revision="2025-11-25",
        lacks={"prompt": "it has no prompts", "logs": _NO_LOGS},
    ),
    IsolatedClient(
        name="strands",
        environment="strands",
        script="strands_client",
        revision="2026-07-28",
        lacks={"logs": _NO_LOGS, "resumption": NO_RESUMPTION},
    ),
    IsolatedClient(
        name="llama-index",
        environment="llama-index",
        script="llama_index_tools",
        revision="2025-11-25",
        lacks={"logs": _NO_LOGS, "question": _NO_QUESTION},
    ),
    IsolatedClient(
        name="crewai",
        environment="crewai",
        script="crewai_adapter",
        revision="2025-11-25",
        lacks={
            "resource": _TOOLS_ALONE,
            "prompt": _TOOLS_ALONE,
            "progress": _NO_PROGRESS,
            "logs": _NO_LOGS,
            "question": _NO_QUESTION,
            "resumption": "no call of it says anything before its end",
            "cancellation": "its calls cannot be called off",
        },
    ),
]
UNDER_WSGI = {"python-sdk-1.30", "python-sdk-1.12", "python-sdk-1.9", "fastmcp", "fastmcp-legacy"}
"""Who is sent to workers under WSGI, too, whose threads may wait for streams. There a session has
no stream of its own; no step of a tour needs one.
"""
ISOLATED = [
    *AT_THE_MOUNT,
    *(replace(each, door="threads") for each in AT_THE_MOUNT if each.name in UNDER_WSGI),
    replace(
        FASTMCP,
        door="wsgi",
        lacks={**FASTMCP.lacks, "cancellation": "that a client has gone is seen at a write alone"},
    ),
]
