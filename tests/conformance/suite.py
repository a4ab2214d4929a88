"""The official suite as a function: list its scenarios, run them, read its findings."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import nodejs

HERE = Path(__file__).resolve().parent
PROGRAM = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
OLDEST_NODE = 22
SCENARIO_MILLISECONDS = "15000"
CLIENT_MILLISECONDS = "60000"
"""For a client; it has to start as well."""
RUN_SECONDS = 600

RESULT_DIRECTORY = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
LISTED_SCENARIO = re.compile(r"  - (?P<scenario>\S+)")

Check = dict[str, Any]


def install() -> None:
    """Install the suite, unless it is there."""
    nodejs.install(HERE)


def listed(*selection: str) -> list[str]:
    """The names of the server scenarios that a selection stands for, by the suite's own list."""
    output = nodejs.run([*_program(), "list", "--server", *selection], HERE)
    return list(_server_scenarios(output.splitlines()))


def _server_scenarios(lines: Sequence[str]) -> Iterator[str]:
    # A list of requirements goes on with the client's scenarios and those that are not scored.
    under_heading = False
    for line in lines:
        if match := LISTED_SCENARIO.match(line):
            if under_heading:
                yield match["scenario"]
        elif line.strip():
            under_heading = line.startswith("Server scenarios")


def listed_for_clients(revision: str | None) -> list[str]:
    """The names of the client scenarios of a revision, by the suite's own list.

    Without one those of the extensions, which belong to none.
    """
    selection = [] if revision is None else ["--spec-version", revision]
    output = nodejs.run([*_program(), "list", "--client", *selection], HERE)
    lines = [line for line in output.splitlines() if revision or line.endswith("[extension]")]
    return [line["scenario"] for line in map(LISTED_SCENARIO.match, lines) if line]


def client_findings(name: str, revision: str | None, *, command: str, output: Path) -> list[Check]:
    """Have a scenario run a client; give its checks, and a failure if the client fails."""
    output.mkdir(parents=True)
    selection = [] if revision is None else ["--spec-version", revision]
    options = ["--command", command, "--scenario", name, *selection]
    arguments = [*options, "--timeout", CLIENT_MILLISECONDS, "-o", str(output)]
    log = nodejs.run([*_program(), "client", *arguments], HERE, seconds=RUN_SECONDS, good=(0, 1))
    (output / "suite.log").write_text(log)
    found = [json.loads(path.read_text()) for path in output.rglob("checks.json")]
    failed = "Client exited with code" in log or "Client timed out" in log
    failure = {"id": "client", "name": "client", "status": "FAILURE", "errorMessage": "see the log"}
    return [*(check for checks in found for check in checks), *([failure] if failed else [])]


def findings(url: str, *selection: str, output: Path) -> dict[str, list[Check]]:
    """Run a selection against the server at `url`; give every scenario's checks."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    arguments = ["--url", url, "--timeout", SCENARIO_MILLISECONDS, "-o", str(output)]
    command = [*_program(), "server", *selection, *arguments]
    # The exit code says no more than the checks, and nothing of warnings and skips.
    log = nodejs.run(command, HERE, seconds=RUN_SECONDS, good=(0, 1))
    (output / "suite.log").write_text(log)
    return dict(_read_results(output))


def _read_results(output: Path) -> Iterator[tuple[str, list[Check]]]:
    for path in sorted(output.glob("*/checks.json")):
        if match := RESULT_DIRECTORY.fullmatch(path.parent.name):
            yield match["scenario"], json.loads(path.read_text())


def _program() -> list[str]:
    return [nodejs.node(HERE, oldest=OLDEST_NODE), PROGRAM]
