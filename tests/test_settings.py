"""``DJANGO_MCP``: mistakes are named, with the cure, and reading it costs next to nothing."""

from __future__ import annotations

import sys
import threading
from dataclasses import FrozenInstanceError
from threading import Event, Thread
from types import FrameType
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_mcp import MCPServer, conf
from django_mcp.conf import (
    MAX_SERVER_NAME_LENGTH,
    Settings,
    get_settings,
    get_site_settings,
    read_settings,
)
from django_mcp.models import PendingRequest, Session
from django_mcp.server.errors import RegistrationError
from tests.conftest import check_settings

BOUND = 10
"""Seconds for what takes no time."""


def test_overridden_settings_are_in_force_as_long_as_they_are_overridden(settings):
    settings.DJANGO_MCP = None
    assert get_settings().page_size == 100
    with override_settings(DJANGO_MCP={"PAGE_SIZE": 7}):
        assert get_settings().page_size == 7
        with override_settings(DJANGO_MCP={"PAGE_SIZE": 0}):
            for _ in range(2):
                with pytest.raises(ImproperlyConfigured):
                    get_settings()
        assert get_settings().page_size == 7
    assert get_settings().page_size == 100


def test_settings_of_django_are_in_force_as_long_as_they_are_overridden():
    before = get_site_settings()
    with override_settings(USE_X_FORWARDED_HOST=True):
        assert get_site_settings() == before._replace(use_x_forwarded_host=True)
        with override_settings(SECURE_SSL_REDIRECT=True):
            assert get_site_settings()[:2] == (True, True)
    assert get_site_settings() == before


def test_settings_are_one_frozen_object_until_they_change(settings):
    settings.DJANGO_MCP = {"ALLOWED_ORIGINS": ["https://a.example"]}
    found = get_settings()
    settings.ROOT_URLCONF = "elsewhere"
    assert get_settings() is found
    with pytest.raises(FrozenInstanceError):
        found.page_size = 3
    assert found.allowed_origins == ("https://a.example",)
    settings.DJANGO_MCP = {"ALLOWED_ORIGINS": ["https://a.example"]}
    assert get_settings() is not found


def test_settings_that_are_known_cost_no_call_of_a_python_function(settings):
    settings.DJANGO_MCP = {"PAGE_SIZE": 7}
    get_settings()
    called: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        size = get_settings().page_size
    finally:
        sys.setprofile(None)
    assert (size, called) == (7, [])


def test_what_was_read_before_a_change_is_not_kept_after_it(settings, monkeypatch):
    """One thread is still reading the old settings when another has changed them."""
    settings.DJANGO_MCP = {"PAGE_SIZE": 7}
    reading, changed = Event(), Event()

    def read_slowly(raw: Any) -> Settings:
        if threading.current_thread() is slow:
            reading.set()
            assert changed.wait(BOUND)
        return read_settings(raw)

    monkeypatch.setattr(conf, "read_settings", read_slowly)
    override = override_settings(DJANGO_MCP={"PAGE_SIZE": 8})
    slow, changing = Thread(target=get_settings), Thread(target=override.enable)
    slow.start()
    try:
        assert reading.wait(BOUND)
        changing.start()
        changing.join(0.1)  # it waits for the other, or else has forgotten too early by now
        changed.set()
        changing.join(BOUND)
        slow.join(BOUND)
        assert get_settings().page_size == 8
    finally:
        changed.set()
        override.disable()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], "must be a dict"),
        ({"PAGESIZE": 1}, "Did you mean 'PAGE_SIZE'"),
        ({"page_size": 1}, "Did you mean 'PAGE_SIZE'"),
        ({"XYZZY": 1}, "Known keys: AUTH"),
        ({"PAGE_SIZE": "many"}, "must be a whole number, not str"),
        ({"PAGE_SIZE": True}, "must be a whole number, not bool"),
        ({"PAGE_SIZE": 0}, "must be at least 1, not 0"),
        ({"PAGE_SIZE": 7.0}, "must be a whole number, not float"),
        ({"THREAD_QUEUE": -1}, "must be at least 0, not -1"),
        ({"LANE_QUEUE": -1}, "DJANGO_MCP['LANE_QUEUE'] must be at least 0, not -1"),
        ({"LEASE_SECONDS": "30"}, "must be a number, not str"),
        ({"LEASE_SECONDS": True}, "must be a number, not bool"),
        ({"LEASE_SECONDS": 1}, "must be at least 2, not 1"),
        ({"SERVER_NAME": "x" * 129}, "may have 128 characters at most"),
        ({3: 1}, "has no key 3. Known keys: AUTH"),
        ({"ATUH": None}, "Did you mean 'PATH' or 'AUTH'?"),
        ({"TIMEOUT": 1}, "Known keys: AUTH"),
        ({"STRICT_ARGUMENTS": 1}, "must be True or False, not int"),
        ({"ALLOWED_ORIGINS": "https://a.example"}, "must be a list, not str"),
        ({"AUTH": 3}, "dotted path or a callable"),
        ({"RATE_LIMIT": 10}, "must be text or None, not int"),
        ({"RATE_LIMIT": "10"}, 'write "10/m"'),
        ({"RATE_LIMIT": "0/m"}, "is no rate"),
        ({"RATE_LIMIT": "10/w"}, "is no rate"),
        ({"RATE_LIMIT": "10/m per host"}, "is no rate"),
        ({"SESSION_CACHE_SECONDS": 10.5}, "may be 10 at most, not 10.5: for so long"),
        ({"SESSION_CACHE_SECONDS": float("nan")}, "may be 10 at most, not nan"),
        ({"SESSION_CACHE_SECONDS": -1}, "must be at least 0, not -1"),
        ({"ANONYMOUS_SESSIONS_SHARE": 50}, "may be 1 at most, not 50: it is a part of"),
    ],
)
def test_what_cannot_be_meant_is_refused(raw, message):
    with pytest.raises(ImproperlyConfigured) as refused:
        read_settings(raw)
    assert message in str(refused.value)


@pytest.mark.parametrize("rate", ["1/s", "600/m", "10/h per process", "9/d", "", None])
def test_rates_are_so_many_in_a_period(rate):
    assert read_settings({"RATE_LIMIT": rate}).rate_limit == rate


@pytest.mark.parametrize("origin", ["https://a.example", "http://[::1]:8000", "*", "null"])
def test_origins_are_scheme_and_host(origin):
    assert read_settings({"ALLOWED_ORIGINS": [origin]}).allowed_origins == (origin,)


@pytest.mark.parametrize("origin", ["https://a.example/", "a.example", "https://", 3])
def test_what_is_no_origin_is_refused(origin):
    with pytest.raises(ImproperlyConfigured, match="is not an origin"):
        read_settings({"ALLOWED_ORIGINS": [origin]})


def test_a_name_has_to_fit_into_its_column():
    MCPServer("x" * MAX_SERVER_NAME_LENGTH)
    with pytest.raises(RegistrationError, match="128 characters at most"):
        MCPServer("x" * (MAX_SERVER_NAME_LENGTH + 1))
    fields = [model._meta.get_field("server") for model in (Session, PendingRequest)]
    assert {field.max_length for field in fields} == {MAX_SERVER_NAME_LENGTH}


def test_a_test_that_changes_the_settings_of_all_others_fails(settings):
    settings.DJANGO_MCP |= {"SERVER_NAME": "left behind"}
    with pytest.raises(pytest.fail.Exception, match="was changed for all tests"):
        check_settings()
    assert settings.DJANGO_MCP["SERVER_NAME"] == "test"
