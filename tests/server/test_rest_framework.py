"""What REST framework raises, where a site has it."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest
from django.utils.translation import override
from rest_framework import exceptions, serializers

from tests.support.exceptions import announced

from .support import reading
from .test_failures import call, prompted, raising, records

__all__ = ["announced"]


class Line(serializers.Serializer):
    sku = serializers.CharField()
    count = serializers.IntegerField(min_value=1)


class Address(serializers.Serializer):
    street = serializers.CharField()


class Order(serializers.Serializer):
    lines = Line(many=True)
    address = Address()

    def validate(self, attrs: Any) -> Any:
        raise serializers.ValidationError("Choose either.")


def nested() -> Any:
    lines = [{"sku": "a", "count": 1}, {"sku": "b", "count": 0}, {}]
    return Order(data={"lines": lines, "address": {}}).is_valid(raise_exception=True)


def of_all() -> Any:
    line = {"sku": "a", "count": 1}
    order = Order(data={"lines": [line], "address": {"street": "s"}})
    return order.is_valid(raise_exception=True)


def many() -> Any:
    return Line(data=[{}, {"sku": "a", "count": 2}], many=True).is_valid(raise_exception=True)


TOLD: dict[str, tuple[Any, str, int]] = {
    "nested": (
        nested,
        "lines.1.count: Ensure this value is greater than or equal to 1.\n"
        "lines.2.sku: This field is required.\n"
        "lines.2.count: This field is required.\n"
        "address.street: This field is required.",
        logging.INFO,
    ),
    "of all fields": (of_all, "Choose either.", logging.INFO),
    "many": (
        many,
        "0.sku: This field is required.\n0.count: This field is required.",
        logging.INFO,
    ),
    "plain": (lambda: serializers.ValidationError("No."), "No.", logging.INFO),
    "list": (lambda: serializers.ValidationError(["No.", "Never."]), "No.\nNever.", logging.INFO),
    "not found": (exceptions.NotFound, "Not found.", logging.INFO),
    "throttled": (
        lambda: exceptions.Throttled(wait=5),
        "Request was throttled. Expected available in 5 seconds.",
        logging.INFO,
    ),
    "denied": (
        exceptions.PermissionDenied,
        "You do not have permission to perform this action.",
        logging.WARNING,
    ),
    "nobody": (
        exceptions.NotAuthenticated,
        "Authentication credentials were not provided.",
        logging.WARNING,
    ),
}


@pytest.mark.parametrize(("make", "text", "level"), TOLD.values(), ids=TOLD)
def test_what_is_below_500_is_told(make, text, level, caplog, announced):
    with caplog.at_level(logging.INFO, "django_mcp.server"):
        assert call(make).assert_failed().text == text
    assert [each.levelno for each in records(caplog)] == [level]
    assert announced == []


def test_it_is_told_in_the_language_in_force():
    with override("de"):
        text = call(many).text
    assert "0.sku: Dieses Feld ist zwingend erforderlich." in text


def test_what_is_a_failure_of_the_server_is_one(announced):
    class Down(exceptions.APIException):
        status_code = 503

    for error in (exceptions.APIException, Down):
        call(error).assert_failed("The tool failed.")
    assert len(announced) == 2


def test_elsewhere_what_is_missing_or_refused_is_what_it_is_with_django(announced):
    prompted(exceptions.NotFound).assert_error(-32602, "Not found.")
    prompted(exceptions.PermissionDenied).assert_error(-32602, "Unknown prompt: it")
    reading("x://y", raising(exceptions.NotFound)).assert_error(-32602, "Resource not found: x://y")
    assert announced == []
    prompted(many).assert_error(-32603, "Internal error")
    assert len(announced) == 1


def test_a_site_without_it_does_not_import_it():
    code = """
import sys, django
from django.conf import settings
settings.configure(
    SECRET_KEY="x",
    ALLOWED_HOSTS=["testserver"],
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django_mcp"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()
from django_mcp import MCPServer
from django_mcp.testing import MCPClient
server = MCPServer("test")
def it(): raise LookupError
server.tool(it)
answer = MCPClient(server, revision="2026-07-28").tool("it").assert_failed("The tool failed.")
assert "rest_framework" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
