"""Runs the official suite's client scenarios: `python tests/conformance/run_client.py`."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
# A script has its own directory on the path, not the checkout.
sys.path.insert(0, str(HERE.parent.parent))

from tests.conformance import scoring, suite  # noqa: E402
from tests.conformance.nodejs import NodeError  # noqa: E402

EXTENSIONS = "extensions"
LEGS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", EXTENSIONS)
RESULTS = HERE / "out"
PROGRAM = HERE / "client.py"

OUT_OF_SCOPE = {"sep-2640-": "the extension for skills"}
"""By the beginning of a scenario's name, why it is not run."""

NO_PROOFS = scoring.Known(
    "DPoP: a proof, signed for each request; the official SDK's OAuth providers make none, and the"
    " client leaves the login to them"
)
KNOWN: Mapping[str, Mapping[str, scoring.Known]] = {
    EXTENSIONS: {"auth/dpop": NO_PROOFS, "auth/dpop-nonce": NO_PROOFS}
}
"""By leg and scenario, what cannot pass, and why."""

EXPECTED_SKIPS = {
    "ClientMcpMethodHeader_initialize": "2026-07-28 has no such request",
    "ClientMcpMethodHeader_notifications_initialized": "2026-07-28 has no such notification",
}
"""By the name of a check, why it is skipped. Anything but a skip is a failure there."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the legs that were asked for, print the table, and give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leg", choices=LEGS, action="append", help="by default all")
    options = parser.parse_args(arguments)
    try:
        suite.install()
        reports = [run_leg(leg) for leg in options.leg or LEGS]
    except NodeError as error:
        print(error, file=sys.stderr)
        return 2
    print(scoring.table(reports))
    for leg in options.leg or LEGS:
        for name, limit in KNOWN.get(leg, {}).items():
            print(f"does not pass: {name}: {limit.reason}")
    for name, reason in out_of_scope(options.leg or LEGS):
        print(f"out of scope: {name}: {reason}")
    return 1 if any(report.problems for report in reports) else 0


def out_of_scope(legs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What the suite lists and is not run, by name, with the reason."""
    for name in sorted({name for leg in legs for name in listed(leg)}):
        for beginning, reason in OUT_OF_SCOPE.items():
            if name.startswith(beginning):
                yield name, reason


def listed(leg: str) -> list[str]:
    """The scenarios of a leg, by the suite's own list."""
    return suite.listed_for_clients(revision_of(leg))


def revision_of(leg: str) -> str | None:
    """The revision of a leg; extensions belong to none."""
    return None if leg == EXTENSIONS else leg


def run_leg(leg: str) -> scoring.Report:
    """Run every scenario of a leg that is in scope."""
    selected = [name for name in listed(leg) if not name.startswith(tuple(OUT_OF_SCOPE))]
    output = RESULTS / f"client-{leg}"
    shutil.rmtree(output, ignore_errors=True)
    # One after the other: a scenario measures the pause before a reconnection.
    findings = {name: run_scenario(name, revision_of(leg), output) for name in selected}
    known = KNOWN.get(leg, {})
    return scoring.compare(f"client-{leg}", selected=selected, findings=findings, known=known)


def run_scenario(name: str, revision: str | None, output: Path) -> list[suite.Check]:
    """Run one scenario; give its checks but the skips that cannot be otherwise."""
    checks = suite.client_findings(
        name, revision, command=f"{sys.executable} {PROGRAM}", output=output / name
    )
    return list(without_expected_skips(checks))


def without_expected_skips(checks: Sequence[suite.Check]) -> Iterator[suite.Check]:
    """Leave out each check that is listed, if it was skipped."""
    for check in checks:
        if check["status"] != "SKIPPED" or check["name"] not in EXPECTED_SKIPS:
            yield check


if __name__ == "__main__":
    sys.exit(main())
