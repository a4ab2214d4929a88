"""One record of the log for each call, for whoever wants it."""

from __future__ import annotations

import json
import logging
from dataclasses import fields

import pytest

from django_mcp.running.call_observers import LOGGED
from django_mcp.signals import CallInfo

LOGGER = "django_mcp.calls"


def records(caplog) -> list[logging.LogRecord]:
    return [each for each in caplog.records if each.name == LOGGER]


@pytest.mark.parametrize("tool", ["add", "aadd", "crash"])
def test_each_call_is_a_record_with_its_fields(caller, caplog, tool):
    caplog.set_level(logging.INFO, LOGGER)
    arguments = {} if tool == "crash" else {"a": 1, "b": 2}
    answer = caller.call("tools/call", 5, name=tool, arguments=arguments)
    (record,) = records(caplog)
    given = {name: value for name, value in vars(record).items() if name.startswith("mcp_")}
    duration = given.pop("mcp_duration")
    has_failed = answer.result["isError"]
    assert given == {
        "mcp_server": "observed",
        "mcp_method": "tools/call",
        "mcp_name": tool,
        "mcp_user_id": "7",
        "mcp_client_id": "desk",
        "mcp_session_id": None,
        "mcp_era": "modern",
        "mcp_revision": "2026-07-28",
        "mcp_request_id": 5,
        "mcp_outcome": "tool_error" if has_failed else "ok",
        "mcp_error": "tests.observing.site.Broken" if has_failed else "",
        "mcp_error_code": None,
        "mcp_answer_bytes": len(answer.body),
    }
    assert 0 < duration < 10
    assert json.dumps(given)
    assert f"tools/call '{tool}': " in record.getMessage()
    assert record.levelno == logging.INFO


def test_a_name_with_a_new_line_makes_no_second_line(caller, caplog):
    caplog.set_level(logging.INFO, LOGGER)
    caller.opened().tool("x\nERROR all is lost")
    assert "\n" not in records(caplog)[-1].getMessage()


def test_the_secret_of_a_session_is_not_in_it(caller, caplog):
    caplog.set_level(logging.INFO, LOGGER)
    member = caller.opened()
    member.tool("add", a=1, b=2)
    assert str(member.session) not in str([vars(each) for each in records(caplog)])


def test_nothing_is_written_where_the_logger_does_not_take_it(caller, caplog):
    caplog.set_level(logging.WARNING, LOGGER)
    caller.tool("add", a=1, b=2)
    assert records(caplog) == []


def test_who_changes_the_level_is_heard_at_once(caller, caplog):
    """Also through a logger above, and by ``logging.disable()``."""
    caplog.set_level(logging.WARNING, "django_mcp")
    caller.tool("add", a=1, b=2)
    assert records(caplog) == []
    caplog.set_level(logging.INFO, "django_mcp")
    caller.tool("add", a=1, b=2)
    assert len(records(caplog)) == 1
    logging.disable(logging.INFO)
    caller.tool("add", a=1, b=2)
    logging.disable(logging.NOTSET)
    assert len(records(caplog)) == 1
    logger = logging.getLogger(LOGGER)
    logger.disabled = True
    caller.tool("add", a=1, b=2)
    logger.disabled = False
    assert len(records(caplog)) == 1


def test_every_field_is_logged_but_the_user_whose_key_is():
    assert tuple(each.name for each in fields(CallInfo) if each.name != "user") == LOGGED


def test_a_filter_that_breaks_harms_nothing(caller, caplog):
    def planted(record: logging.LogRecord) -> bool:
        raise RuntimeError("planted")

    caplog.set_level(logging.INFO, LOGGER)
    logger = logging.getLogger(LOGGER)
    logger.addFilter(planted)
    try:
        assert caller.tool("add", a=1, b=2).result["isError"] is False
    finally:
        logger.removeFilter(planted)
    assert "planted" in caplog.text
