"""What contributors are told to run is there, and is told alike wherever it is told."""

from __future__ import annotations

import re
import subprocess

from .markdown import ROOT, text_of
from .tables import code, rows, section

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def recipe(target: str) -> list[str]:
    """Return the commands of a target, without where their programs are."""
    lines = re.search(rf"^{target}:.*\n(?:##.*\n)*((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert lines is not None, target
    return [line.strip().removeprefix("$(BIN)/") for line in lines[1].splitlines()]


def targets() -> set[str]:
    (named,) = re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    return set(named.split())


def test_make_help_lists_every_target():
    assert set(re.findall(r"^([a-z][a-z-]*):(?!=)", MAKEFILE, re.MULTILINE)) == targets()
    shown = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert set(re.findall(r"^make (\S+)  ?", shown.stdout, re.MULTILINE)) == targets()


def test_every_check_is_in_the_table_of_checks():
    table = rows(section("CONTRIBUTING.md", "## Run the checks"))
    checks = targets() - {"help", "demo", "format", "pictures", "dist", "clean"}
    assert {code(row[0]).removeprefix("make ") for row in table} == checks


def test_hooks_run_what_make_lint_runs():
    hooks = re.findall(r"^ +entry: \.venv/bin/(.+)$", text_of(".pre-commit-config.yaml"), re.M)
    # They are given files, and may mend them.
    bare = [re.sub(r" --(?:force-exclude|fix)", "", hook) for hook in hooks]
    wanted = [re.sub(r" --check| \.$", "", line).removesuffix(" .") for line in recipe("lint")]
    assert bare == wanted


def test_the_workflow_runs_what_make_test_all_runs():
    assert f"- run: {recipe('test-all')[0]}" in text_of(".github/workflows/ci.yml")
