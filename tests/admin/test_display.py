from __future__ import annotations

import datetime as dt

import pytest
from django.utils import translation

from django_mcp.admin.display import LONGEST, pretty, relative, two_lines

NOW = dt.datetime(2026, 7, 28, 12, 0, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (-59, "just now"),
        (-60, "1\xa0minute ago"),
        (-200, "3\xa0minutes ago"),
        (-90_000, "1\xa0day ago"),
        (0.4, "in a moment"),
        (1, "in 1\xa0second"),
        (59.9, "in 59\xa0seconds"),
        (60, "in 1\xa0minute"),
        (119.9, "in 1\xa0minute"),
        (7_199, "in 1\xa0hour"),
    ],
)
def test_a_moment_says_how_far_away_it_is(seconds, words):
    shown = relative(NOW + dt.timedelta(seconds=seconds), now=NOW)
    assert f">{words}</time>" in shown


def test_a_moment_has_its_exact_time_in_the_site_s_zone_as_title(settings):
    settings.TIME_ZONE = "Europe/Berlin"
    shown = relative(NOW, now=NOW)
    assert 'datetime="2026-07-28T12:00:00+00:00"' in shown
    assert 'title="2026-07-28 14:00:00+02:00"' in shown


def test_a_moment_without_a_time_zone_is_shown_as_it_is(settings):
    settings.USE_TZ = False
    naive = NOW.replace(tzinfo=None)
    assert 'title="2026-07-28 12:00:00"' in relative(naive, now=naive)


def test_no_moment_is_a_dash():
    assert relative(None, now=NOW) == "-"


def test_spans_speak_the_language_of_the_reader():
    with translation.override("de"):
        assert "3\xa0Minuten" in relative(NOW - dt.timedelta(minutes=3), now=NOW)


def test_what_clients_send_is_escaped_and_cut():
    shown = pretty({"name": "<script>", "title": "x" * 10_000})
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert len(shown) < LONGEST + 200
    assert "…" in shown


def test_what_is_no_text_is_shown_all_the_same():
    assert "a?b" in pretty({"name": "a\ud800b"})


def test_the_lesser_fact_may_be_missing():
    assert two_lines("<b>", "") == "&lt;b&gt;"
    assert "<br>" in two_lines("anna", "client")
