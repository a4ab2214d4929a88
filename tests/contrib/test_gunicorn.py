"""The settings for gunicorn, with workers that are none; real ones are in ``tests/workers``."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from django_mcp.contrib.gunicorn import post_worker_init


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
