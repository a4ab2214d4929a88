"""The page of a run: every figure in its place, and honest about what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from benchmarks.contenders import BARES, ENTRANCES, PEERS, REFERENCE
from benchmarks.environments import OWN
from benchmarks.figures import Spread
from benchmarks.flames import ORIGINS, REST, summed_up
from benchmarks.legs import LEGACY, MODERN
from benchmarks.plots import Bar, bars, flame
from benchmarks.report import PLACES, TEMPLATE, write
from benchmarks.results import Results, cell_name
from benchmarks.targets import MOUNT, MOUNT_REMEMBERING, VIEW_REMEMBERING, targets


def measured(contender: str, cell: str, *rates: float, **other: Any) -> list[dict[str, Any]]:
    common = {"contender": contender, "cell": cell, "microseconds": 10, "median": 1, "late": 2}
    common |= {"wrong": 0, "server_busy": 1.0}
    return [{**common, "round": number, "rate": rate, **other} for number, rate in enumerate(rates)]


def results(*rows: list[dict[str, Any]], **other: Any) -> Results:
    report = {
        "date": "2026-01-02",
        "machine": dict.fromkeys(("processor", "cores", "memory", "system", "python"), "some"),
        "versions": {"here": {"django": "1"}},
        "plan": {"rounds": 3, "seconds": 2.0},
        "others": 0.25,
        "others_most": 0.5,
        "generator": {"rate": 12345, "microseconds": 6.7},
        "levels": [1, 1000],
        "held": [],
        "woken": [],
        "flames": [],
        "left_out": {},
        "measured": [each for row in rows for each in row],
    }
    return Results(report | other)


def verdicts(found: Results) -> dict[str, tuple[str, bool | None]]:
    return {each.title: (each.measured, each.reached) for each in targets(found)}


def test_ratios_to_the_bare_view_are_taken_round_by_round():
    add = cell_name("add", MODERN)
    found = results(
        measured(REFERENCE, cell_name("plain", MODERN), 100, 1000, 10),
        measured("view, gunicorn gthread", add, 95, 950, 9),
    )
    assert found.to_bare("view, gunicorn gthread", add) == Spread(0.95, 0.9, 0.95)
    title = "view under gthread, modern call, to the bare view"
    assert verdicts(found)[title] == ("0.95 × (0.90 to 0.95)", True)  # noqa: RUF001


def test_a_target_that_is_missed_and_one_that_was_not_measured_say_so(tmp_path: Path):
    add = cell_name("add", MODERN)
    found = results(
        measured(REFERENCE, cell_name("plain", MODERN), 100),
        measured("view, gunicorn gthread", add, 91),
    )
    reached = [each for _, each in verdicts(found).values()]
    assert reached.count(False) == 1
    assert set(reached) == {False, None}
    write(found, tmp_path / "page.md", tmp_path)
    text = (tmp_path / "page.md").read_text()
    assert "| **no** |" in text
    assert "| not measured | — |" in text


def test_growth_compares_the_least_with_the_most():
    cell = cell_name("add", LEGACY)
    found = results(
        measured(f"{MOUNT}, 1 sessions", cell, 110, 220),
        measured(f"{MOUNT}, 1,000 sessions", cell, 100, 200),
    )
    title = "time for `add` from 1 to 1,000 sessions and queues"
    assert verdicts(found)[title] == ("+10%", True)


def test_memory_and_threads_are_judged():
    held = {
        "contender": MOUNT,
        "session": 100.0,
        "stream": 11 * 1024.0,
        "threads": [5, 6],
        "connections": 3,
        "why": "",
    }
    found = verdicts(results(held=[held]))
    assert found["memory for each open session"] == ("0.1 KB", True)
    assert found["memory for each idle stream"] == ("11.0 KB", False)
    assert found["threads, while idle streams are opened"] == ("5 → 6", False)


def test_wrong_answers_servers_that_wait_and_what_was_left_out_are_on_the_page(tmp_path: Path):
    found = results(
        measured("Python SDK, JSON", cell_name("add", LEGACY), 50, 60, wrong=2),
        measured(MOUNT, cell_name("add", LEGACY), 70, 80, server_busy=0.3),
        left_out={"bolt-mcp": "No matching\ndistribution | found"},
    )
    write(found, tmp_path / "page.md", tmp_path / "images")
    text = (tmp_path / "page.md").read_text()
    assert "Python SDK, JSON (4 wrong) | 2025-11-25 | 55 |" in text
    assert f"**{MOUNT}** ◦ |" in text
    assert "| bolt-mcp | No matching distribution \\| found |" in text
    assert "[[" not in text


@pytest.mark.parametrize(("others", "noisy"), [(0.04, False), (0.5, True)])
def test_a_machine_that_was_not_quiet_is_called_so(others: float, noisy: bool):
    assert ("not quiet" in PLACES["machine"](results(others_most=others))) is noisy


def test_what_our_own_servers_lacked_is_said():
    versions = {OWN: {"uvicorn": "1", "uvloop": "missing"}}
    assert "**Our own servers ran without uvloop**" in PLACES["machine"](results(versions=versions))
    assert "ran without" not in PLACES["machine"](results())


def test_every_place_of_the_template_is_filled_and_every_part_has_a_place():
    text = TEMPLATE.read_text()
    assert {place for place in PLACES if f"[[{place}]]" in text} == set(PLACES)


def test_pictures_that_the_page_shows_are_written(tmp_path: Path):
    write(results(), tmp_path / "explanation" / "page.md", tmp_path / "images")
    for picture in (tmp_path / "images").iterdir():
        assert f"(../images/{picture.name})" in TEMPLATE.read_text()
        ET.parse(picture)
    assert len(list((tmp_path / "images").iterdir())) == TEMPLATE.read_text().count("../images/")


def test_bars_are_drawn_to_scale_and_their_words_are_escaped():
    picture = bars(
        "a < b", [Bar("x & y", "ours", 50, 40, 60, "50"), Bar("z", "peer", 25, 25, 25, "")]
    )
    root = ET.fromstring(picture)
    widths = [
        float(each.attrib["width"])
        for each in root.iter(f"{SVG}rect")
        if each.attrib["height"] == "18"
    ]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)


def test_names_are_unique_and_targets_name_who_is_there():
    names = [each.name for each in (*BARES, *ENTRANCES, *PEERS)]
    assert len(set(names)) == len(names)
    assert {MOUNT, REFERENCE, VIEW_REMEMBERING, MOUNT_REMEMBERING} <= set(names)


SVG = "{http://www.w3.org/2000/svg}"
STACKS = """\
run (uvicorn/server.py);respond (django_mcp/http/endpoint.py);parse (json/decoder.py) 60
run (uvicorn/server.py);respond (django_mcp/http/endpoint.py);execute (psycopg/cursor.py) 30
run (uvicorn/server.py);respond (django_mcp/http/endpoint.py) 10
wait (threading.py) 4000
""".splitlines()


def test_stacks_become_shares_and_a_tree_of_what_answers():
    found = summed_up(STACKS)
    assert found["shares"] == {REST: 0.6, "driver": 0.3, "django_mcp": 0.1}
    (name, _, share, calls) = found["tree"]
    assert (name, share) == ("run", 1.0)
    ((_, origin, _, leaves),) = calls
    assert origin == "django_mcp"
    assert [each[:3] for each in leaves] == [["parse", REST, 0.6], ["execute", "driver", 0.3]]


def test_a_flame_stands_on_its_caller_and_is_as_wide_as_its_share():
    origins = [*dict.fromkeys(ORIGINS.values()), REST]
    picture = ET.fromstring(flame("<one>", summed_up(STACKS)["tree"], origins))
    frames = {
        each[0].text: each[1].attrib
        for each in picture.iter(f"{SVG}g")
        if each[0].tag == f"{SVG}title"
    }
    respond, parse = frames["respond, django_mcp: 100.0%"], frames[f"parse, {REST}: 60.0%"]
    assert float(parse["y"]) > float(respond["y"])
    assert float(parse["width"]) == pytest.approx(0.6 * float(respond["width"]), abs=0.1)


def test_the_page_shows_where_the_time_goes(tmp_path: Path):
    flamed = {"contender": MOUNT, "cell": cell_name("add", MODERN), "picture": "mount-modern"}
    write(results(flames=[flamed | summed_up(STACKS)]), tmp_path / "page.md", tmp_path)
    assert "| mount, uvicorn | 2026-07-28 | 10% |" in (tmp_path / "page.md").read_text()
    assert (tmp_path / "flame-mount-modern.svg").exists()
