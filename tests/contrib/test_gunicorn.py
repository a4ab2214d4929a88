"""The settings for gunicorn, with workers that are none; real ones are in ``tests/workers``."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from django_mcp.contrib.gunicorn import post_worker_init, worker_exit
from django_mcp.running import shutdown


@pytest.mark.parametrize(
    ("has", "said"),
    [
        ({"tpool": None}, ["django_mcp.contrib.gunicorn needs gunicorn 24 or newer"]),
        ({"tpool": None, "set_accept_enabled": print}, []),
        ({}, []),
    ],
    ids=["threads of gunicorn 23", "threads", "others"],
)
def test_workers_that_cannot_be_helped_say_so(caplog, has, said):
    post_worker_init(SimpleNamespace(log=logging.getLogger("gunicorn.error"), **has))
    assert [message.partition(" for ")[0] for message in caplog.messages] == said


@pytest.mark.parametrize(
    ("has", "waits"),
    [
        ({"tpool": None, "booted": True}, True),
        ({"tpool": None, "booted": False}, False),
        ({"booted": True}, False),
    ],
    ids=["threads", "threads that could not begin", "others"],
)
def test_the_end_of_a_worker_waits_for_what_is_left(monkeypatch, has, waits):
    waited: list[bool] = []
    monkeypatch.setattr(shutdown, "drain_on_thread", lambda: waited.append(True))
    worker_exit(None, SimpleNamespace(**has))
    assert bool(waited) is waits
