"""What `make mutants` plants, and which tests it takes to notice that."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="in the dependency group `mutants`")

from cosmic_ray.mutating import mutate_code
from coverage import CoverageData

from .operators import OWN
from .planting import Mutant, chosen, mutants_of
from .plugin import name_of
from .reach import COVERAGE, SECONDS, Reach, read
from .run import table
from .trial import FEW_TESTS, Outcome, in_turns

SOURCE = textwrap.dedent("""\
    from typing import TYPE_CHECKING, overload

    if TYPE_CHECKING:
        import this

    MOST = 3
    PAUSE_SECONDS = 0.5
    MANY = 10000

    @remember(size=7)
    def first(items):
        assert items is not None
        if len(items) > MOST:
            return 1
        items.pop(
            index=0
        )

    @overload
    def second(items=9): ...
    """)
EXAMPLES = {
    f"{operator.__name__}: {each.pre_mutation_code} -> {each.post_mutation_code}": (operator, each)
    for operator in OWN
    for each in operator.examples()
}


@pytest.mark.parametrize(("operator", "example"), EXAMPLES.values(), ids=EXAMPLES)
def test_a_bug_is_of_its_kind(operator, example):
    planted = mutate_code(example.pre_mutation_code, operator(), example.occurrence)
    assert planted == example.post_mutation_code


def test_nothing_is_planted_where_no_run_could_tell():
    assert {mutant.line for mutant in mutants_of(SOURCE, "x.py")} == {6, 13, 14, 15, 16}


def test_every_bug_is_on_its_line_and_python_can_read_it():
    lines = SOURCE.splitlines()
    for mutant in mutants_of(SOURCE, "x.py"):
        planted = mutant.plant(SOURCE).splitlines()
        compile("\n".join(planted), "x.py", "exec")
        before = mutant.line - 1
        assert planted[:before] == lines[:before]
        assert planted[before] != lines[before]


def test_the_same_seed_plants_the_same_bugs(tmp_path):
    package = tmp_path / "code" / "package"
    package.mkdir(parents=True)
    (package / "module.py").write_text(SOURCE)
    first, again, other = (chosen(tmp_path / "code", ["package"], 3, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len({mutant.line for mutant in first}) == 3
    assert {mutant.path for mutant in first} == {"code/package/module.py"}
    assert len(chosen(tmp_path / "code", ["package"], 99, 1)) == 5


def mutant_at(line: int) -> Mutant:
    return next(mutant for mutant in mutants_of(SOURCE, "a/x.py") if mutant.line == line)


def reach(**lines: dict[int, set[str]]) -> Reach:
    found = {
        f"a/{name}.py": {number: frozenset(tests) for number, tests in of_file.items()}
        for name, of_file in lines.items()
    }
    return Reach(found, {"t.py::slow": 3.0, "t.py::quick": 0.1, "other.py::test": 1.0})


def test_the_tests_of_a_bug_are_those_that_reach_its_line():
    measured = reach(x={13: {"t.py::slow", "t.py::quick"}, 14: {"t.py::slow"}})
    assert measured.of_mutant(mutant_at(14)) == ["t.py::slow"]


def test_within_a_statement_of_several_lines_they_reach_its_beginning():
    measured = reach(x={14: {"t.py::slow"}, 15: {"t.py::quick"}})
    assert measured.of_mutant(mutant_at(16)) == ["t.py::quick"]


def test_what_runs_on_import_is_reached_with_anything_of_the_module():
    measured = reach(x={13: {"t.py::slow"}}, y={1: {"t.py::quick"}})
    assert measured.of_mutant(mutant_at(6)) == ["t.py::slow"]


def test_what_runs_on_a_thread_of_no_test_is_reached_with_anything_of_the_module():
    measured = reach(x={13: {"t.py::slow"}, 14: set()})
    assert measured.of_mutant(mutant_at(14)) == ["t.py::slow"]


def test_what_never_runs_is_reached_by_nothing():
    assert reach(x={13: {"t.py::slow"}}).of_mutant(mutant_at(14)) == []


def test_a_module_in_which_nothing_else_runs_is_reached_with_those_beside_it():
    measured = reach(x={}, y={1: {"t.py::quick"}})
    assert measured.of_mutant(mutant_at(6)) == ["t.py::quick"]


def suite_of(folder: Path, test: str, *lines: int, failed: str = "") -> Path:
    """Leave what a run of one test has measured, beside what runs on import."""
    folder.mkdir()
    data = CoverageData(str(folder / COVERAGE))
    data.add_lines({"a/x.py": [1]})
    for name in filter(None, (test, failed)):
        data.set_context(f"{name}|run")
        data.add_lines({"a/x.py": lines})
    data.write()
    seconds = {name: 1.0 for name in (test, failed) if name}
    measured = {"seconds": seconds, "failed": [failed] if failed else []}
    (folder / SECONDS).write_text(json.dumps(measured))
    return folder


def test_what_suites_have_reached_is_put_together(tmp_path):
    one = suite_of(tmp_path / "one", "t.py::a", 2, 3)
    other = suite_of(tmp_path / "other", "u.py::b", 3, failed="u.py::c")
    found = read([one, other])
    a, b = frozenset({"t.py::a"}), frozenset({"u.py::b"})
    assert found.lines == {"a/x.py": {1: frozenset(), 2: a, 3: a | b}}
    assert found.seconds == {"t.py::a": 1.0, "u.py::b": 1.0}
    assert found.failed == ("u.py::c",)


def test_a_test_with_other_parameters_comes_after_every_other_test():
    names = ["t.py::a[1]", "t.py::a[2]", "t.py::b", "u.py::c"]
    measured = Reach({}, dict(zip(names, [2.0, 1.0, 4.0, 2.0], strict=True)))
    assert measured.in_order(names) == ["u.py::c", "t.py::a[2]", "t.py::b", "t.py::a[1]"]


def test_a_few_tests_run_first_and_those_with_settings_of_their_own_apart():
    common = [f"tests/wire/t.py::{number}" for number in range(FEW_TESTS + 1)]
    tenants = ["tests/tenants/t.py::a", "tests/tenants/t.py::b"]
    runs = [(suite.settings, some) for suite, some in in_turns([*common, *tenants])]
    assert runs == [
        ("tests.settings", common[:FEW_TESTS]),
        ("tests.tenants.databases", tenants),
        ("tests.settings", common[FEW_TESTS:]),
    ]


@pytest.mark.parametrize("name", ["t.py::test", "t.py::test[a@b]", "t.py::test[[x]@]"])
def test_the_name_of_a_test_is_that_without_its_group(name):
    assert name_of(name) == name_of(f"{name}@group") == name


def test_the_report_counts_by_package():
    def outcome(package: str, noticed_by: str, tests: int = 1) -> Outcome:
        mutant = Mutant(f"django_mcp/{package}/x.py", 1, "OffByOne", 0, 1, True)
        return Outcome(mutant, noticed_by, tests, 1.0)

    outcomes = [
        outcome("http", "t.py::a"),
        outcome("http", "", 0),
        outcome("store", "a test did not end"),
    ]
    rows = [line.split() for line in table(outcomes).splitlines()]
    assert rows[0] == ["planted", "noticed", "by", "time", "no", "test", "percent"]
    assert rows[1:] == [
        ["http", "2", "1", "0", "1", "50"],
        ["store", "1", "1", "1", "0", "100"],
        ["all", "3", "2", "1", "1", "67"],
    ]
