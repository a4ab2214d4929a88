"""Runs the official conformance suite against the fixture: `python tests/conformance/run.py`."""

from __future__ import annotations

import argparse
import http.client
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
# A script has its own directory on the path, not the checkout.
sys.path.insert(0, str(HERE.parent.parent))

from tests.conformance import scoring, suite  # noqa: E402
from tests.conformance.nodejs import NodeError  # noqa: E402
from tests.support.messages import HEADERS, encoded, opening, request  # noqa: E402
from tests.support.proxy import downgrading_proxy  # noqa: E402
from tests.support.servers import DOORS, HOST, RunningServer, ServerError, running_server  # noqa: E402

LIMITS = HERE / "limits.json"
NEWEST_LEGACY = "2025-11-25"


@dataclass(frozen=True, slots=True)
class Leg:
    """One run of the suite: what it selects, and the revision that the proxy forces, if any."""

    name: str
    selection: tuple[str, ...]
    suite: tuple[str, ...] = ()
    forced: str = ""
    without: frozenset[str] = frozenset()
    """Scenarios of what the forced revision does not have."""


def suite_leg(name: str, revision: str, *, forced: str = "", without: str = "") -> Leg:
    """All scenarios of a revision."""
    selection = ("--spec-version", revision)
    left_out = frozenset(without.split())
    return Leg(name, selection, suite=("--suite", "all"), forced=forced, without=left_out)


def requirements_leg(revision: str) -> Leg:
    """The scenarios that a revision requires, frozen at its release."""
    return Leg(f"requirements-{revision}", ("--requirements", revision))


LEGS = {
    leg.name: leg
    for leg in [
        suite_leg("2025-06-18", "2025-06-18"),
        suite_leg("2025-11-25", "2025-11-25"),
        suite_leg("2026-07-28", "2026-07-28"),
        requirements_leg("2025-11-25"),
        requirements_leg("2026-07-28"),
        suite_leg("forced-2025-06-18", "2025-06-18", forced="2025-06-18"),
        # The suite has a single scenario of this revision; those of the next one fit it too.
        suite_leg(
            "forced-2025-03-26", "2025-06-18", forced="2025-03-26", without="tools-call-elicitation"
        ),
    ]
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the legs that were asked for, print the table, and give the exit code."""
    options = _parser().parse_args(arguments)
    legs = [LEGS[name] for name in options.leg or LEGS]
    try:
        limits = scoring.read_limits(LIMITS, door=options.door, legs=LEGS)
        suite.install()
        with running_server(options.door) as server:
            reports = [_run_leg(leg, server, limits, options.output.resolve()) for leg in legs]
    except (NodeError, ServerError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"door: {options.door}")
    print(scoring.table(reports))
    return 1 if any(report.problems for report in reports) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--door", choices=DOORS, default="mount")
    parser.add_argument("--leg", choices=LEGS, action="append", help="by default all")
    parser.add_argument("--output", type=Path, default=HERE / "out", help="where results are kept")
    return parser


def _run_leg(
    leg: Leg, server: RunningServer, limits: scoring.Limits, output: Path
) -> scoring.Report:
    with _target(leg, server) as url:
        found = suite.findings(url, *leg.suite, *leg.selection, output=output / leg.name)
    (output / "server.log").write_bytes(server.log.read_bytes())
    server.check_alive()
    return scoring.compare(
        leg.name,
        selected=[each for each in suite.listed(*leg.selection) if each not in leg.without],
        findings=found,
        known=limits.get(leg.name, {}),
    )


@contextmanager
def _target(leg: Leg, server: RunningServer) -> Iterator[str]:
    if not leg.forced:
        yield server.url
        return
    with downgrading_proxy(server.port, revision=leg.forced) as proxy:
        _check_forced(proxy.port, revision=leg.forced)
        yield f"http://{HOST}:{proxy.port}/mcp"


def _check_forced(port: int, *, revision: str) -> None:
    # Without this, a proxy that rewrites nothing would pass for coverage of the older revision.
    negotiated = _negotiated(port)
    if negotiated != revision:
        raise ServerError(f"The proxy was to force {revision}; negotiated was {negotiated}.")


def _negotiated(port: int) -> object:
    message = request("initialize", **opening(NEWEST_LEGACY))
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    connection.request("POST", "/mcp", encoded(message), HEADERS)
    body = connection.getresponse().read()
    connection.close()
    try:
        return json.loads(body)["result"]["protocolVersion"]
    except (ValueError, KeyError) as error:
        raise ServerError(f"The answer to initialize was {body!r}.") from error


if __name__ == "__main__":
    sys.exit(main())
