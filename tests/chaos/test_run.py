"""What a seed decides, and what a run that could not do everything says."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from . import run as runner
from .checker import Figures
from .legs import Outcome, Plan
from .saboteur import Saboteur
from .servers import has_streams
from .services import Missing, program


def saboteur(seed: str, **options: Any) -> Saboteur:
    return Saboteur([None, None], None, None, seed, Path("db"), **options)  # type: ignore[list-item,arg-type]


def test_a_seed_decides_the_acts():
    acts, again, others = (list(saboteur(seed).acts(30)) for seed in ("1", "1", "2"))

    assert acts == again
    assert acts != others


def test_each_kind_of_act_comes_once_before_any_comes_again():
    kinds = [act.name for act in saboteur("1").acts(0)]

    assert len(kinds) == len(set(kinds)) == len(saboteur("1")._weights())
    assert {act.name for act in saboteur("2").acts(30)} == set(kinds)


def test_acts_can_be_chosen():
    assert {act.name for act in saboteur("1", only=("cut", "kill")).acts(9)} == {"cut", "kill"}


@pytest.mark.parametrize(
    ("door", "expected"),
    [("uvicorn", True), ("daphne", True), ("gunicorn", False), ("gunicorn+uvicorn", True)],
)
def test_streams_need_one_worker_with_a_loop(door, expected):
    assert has_streams(door) is expected


def test_a_program_that_is_not_installed_is_named():
    with pytest.raises(Missing, match="no-such-program is not installed"):
        program("no-such-program")


@pytest.mark.parametrize(("ci", "code"), [("true", 1), ("", 0)])
def test_what_is_left_out_is_said_and_is_a_failure_in_ci(monkeypatch, capsys, tmp_path, ci, code):
    def missing(plan: Plan, directory: Path) -> Outcome:
        raise Missing("mariadbd is not installed")

    monkeypatch.setattr(runner, "run", missing)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("CI", ci)

    assert runner.main(["mariadb-none-uvicorn"]) == code
    assert "LEFT OUT: mariadbd is not installed" in capsys.readouterr().out


@pytest.mark.parametrize(("blames", "code"), [([], 0), ([("lost", "n1", "why")], 1)])
def test_what_is_lost_fails_the_run_and_is_told_whole(monkeypatch, capsys, tmp_path, blames, code):
    events = [
        {"t": 1.0, "e": "sent", "x": "n1", "what": "slow"},
        {"t": 2.0, "e": "act", "name": "kill", "worker": 1, "begun": 1.5, "result": None},
        {"t": 3.0, "e": "end", "x": "n1", "how": "broken"},
    ]

    def ran(plan: Plan, directory: Path) -> Outcome:
        figures = Figures()
        for figure, key, why in blames:
            figures.blame(figure, key, why)
        return Outcome(plan, figures, events, 1.0, directory)

    monkeypatch.setattr(runner, "run", ran)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    report = tmp_path / "report.json"

    assert runner.main(["sqlite-none-daphne", "--seed", "7", "--json", str(report)]) == code
    (leg,) = json.loads(report.read_text())["legs"]
    assert (leg["seed"], [act["name"] for act in leg["acts done"]]) == ("7", ["kill"])
    text = capsys.readouterr().out
    assert ("LOST: n1: why" in text) is bool(code)
    assert ("SENT" in text and '"how": "broken"' in text) is bool(code)
