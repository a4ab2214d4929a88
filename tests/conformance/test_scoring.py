"""What the runner counts as passing, and what it calls a problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from . import scoring
from .scoring import Known
from .suite import Check

LATER = Known("later")


def check(status: str = "SUCCESS", *, id: str = "ping") -> Check:
    return {"id": id, "status": status, "errorMessage": "not\n   so"}


def compared(
    *, selected: list[str], known: dict[str, Known] | None = None, **findings: list[Check]
) -> scoring.Report:
    return scoring.compare("leg", selected=selected, findings=findings, known=known or {})


def texts(checks: list[Check]) -> list[str]:
    return [fault.text for fault in scoring.faults(checks)]


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "SKIPPED", "UNHEARD-OF"])
def test_anything_but_success_and_info_is_a_fault(status: str) -> None:
    assert texts([check(), check(status)]) == [f"{status} ping: not so"]


def test_success_and_info_are_none() -> None:
    assert texts([check(), check("INFO")]) == []


@pytest.mark.parametrize("checks", [[], [check("INFO")], [check(id="wire-schema-valid")]])
def test_a_check_of_the_scenario_itself_must_succeed(checks: list[Check]) -> None:
    assert texts(checks) == ["none of its own checks succeeded"]


def test_counts_by_scenario() -> None:
    report = compared(selected=["a", "b"], a=[check()], b=[check(), check()])

    assert (report.passed, report.expected, report.problems) == (["a", "b"], [], [])


def test_a_failure_is_a_problem_unless_the_door_cannot_carry_it() -> None:
    failing = [check("FAILURE")]

    unknown = compared(selected=["a"], a=failing)
    known = compared(selected=["a"], known={"a": LATER}, a=failing)

    assert unknown.problems == ["a: FAILURE ping: not so"]
    assert (known.expected, known.problems) == (["a"], [])


def test_a_pass_that_the_limits_rule_out_is_a_problem() -> None:
    report = compared(selected=["a"], known={"a": LATER}, a=[check()])

    assert report.passed == []
    assert report.problems == ["a: passes, yet stands among the limits"]


def test_an_entry_may_name_the_checks_that_do_not_pass() -> None:
    entry = Known("later", frozenset({"b", "c"}))
    checks = [check(id="a"), check("FAILURE", id="b"), check("SKIPPED", id="c")]

    as_it_says = compared(selected=["a"], known={"a": entry}, a=checks)
    another = compared(selected=["a"], known={"a": entry}, a=[*checks, check("WARNING", id="d")])
    cured = compared(selected=["a"], known={"a": entry}, a=checks[:2])

    assert (as_it_says.expected, as_it_says.problems) == (["a"], [])
    assert another.problems == ["a: WARNING d: not so"]
    assert cured.problems == ["a: c passes, yet stands among the limits"]


def test_an_unknown_name_among_the_limits_is_a_problem() -> None:
    report = compared(selected=["a"], known={"A": LATER}, a=[check()])

    assert report.problems == ["A: unknown name among the limits"]


def test_a_scenario_that_did_not_run_is_a_problem_even_if_known() -> None:
    report = compared(selected=["a", "b"], known={"b": LATER})

    assert report.problems == ["a: did not run", "b: did not run"]


def test_an_empty_selection_is_a_problem() -> None:
    assert compared(selected=[]).problems == ["the suite lists no scenario"]


def test_reads_both_forms_of_an_entry(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    entries = {"a": "later", "b": {"reason": "in part", "checks": ["c"]}}
    path.write_text(json.dumps({"door": {"leg": entries}}))

    limits = scoring.read_limits(path, door="door", legs=["leg"])

    assert scoring.read_limits(path, door="another", legs=["leg"]) == {}
    assert limits == {"leg": {"a": LATER, "b": Known("in part", frozenset({"c"}))}}


def test_the_limits_name_legs_that_exist(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    path.write_text(json.dumps({"door": {"2025-11-52": {}}}))

    with pytest.raises(ValueError, match="2025-11-52"):
        scoring.read_limits(path, door="door", legs=["2025-11-25"])


def test_the_table_ends_with_the_sum() -> None:
    reports = [
        compared(selected=["a", "b"], a=[check()], b=[check("WARNING")]),
        compared(selected=["a"], a=[check()]),
    ]

    lines = scoring.table(reports).splitlines()

    assert lines[-2:] == ["FAILED leg b: WARNING ping: not so", "2 passed, 1 failed"]
