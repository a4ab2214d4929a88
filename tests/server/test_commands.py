"""Management commands as tools."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core import management
from django.core.management.base import BaseCommand, CommandParser

from django_mcp import Context, MCPServer, RegistrationError
from django_mcp.server import commands
from django_mcp.server.commands import MAX_OUTPUT_CHARACTERS
from django_mcp.testing import MCPClient
from tests.server.support import REVISIONS, client_of

ARGUMENTS = ["supplier", "items", "--since", "--most", "--size", "--dry-run", "mail", "--tag"]


def anybody(user: Any) -> bool:
    return True


def serve(*arguments: str, permission: Any = anybody, **options: Any) -> MCPServer:
    server = MCPServer("test")
    server.command("restock", permission=permission, arguments=arguments or ARGUMENTS, **options)
    return server


def test_the_parser_describes_the_arguments():
    (tool,) = client_of(serve(destructive=False)).list_tools()
    assert tool["name"] == "restock"
    assert tool["description"] == "Order what is out of stock."
    assert tool["annotations"] == {"destructiveHint": False}
    schema = tool["inputSchema"]
    assert schema["required"] == ["supplier"]
    assert schema["properties"] == {
        "supplier": {"type": "string", "description": "Who delivers (as manage.py has it)."},
        "items": {"type": "array", "items": {"type": "string"}},
        "since": {"type": "string"},
        "most": {"type": "integer", "description": "By default 10."},
        "size": {"type": "string", "enum": ["small", "large"]},
        "dry_run": {"type": "boolean", "default": False},
        "mail": {"type": "boolean", "default": True},
        "tag": {"type": "array", "items": {"type": "string"}},
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"type": int, "default": 10}, "By default 10."),
        ({"type": float, "default": 0.5, "help": "How much."}, "How much. By default 0.5."),
        ({"type": int, "default": 10, "help": "10 if left out"}, "10 if left out"),
        ({"default": "b", "choices": ["a", "b"], "help": "Which."}, "Which. By default b."),
        ({"default": "/srv/secret", "help": "Where."}, "Where."),
        ({"choices": ["a", "b"]}, None),
        ({"type": int}, None),
        ({"action": "store_true", "help": "Whether."}, "Whether."),
    ],
)
def test_a_default_is_told_if_it_tells_nothing_of_the_site(options, said, monkeypatch):
    class Command(BaseCommand):
        def add_arguments(self, parser: CommandParser) -> None:
            parser.add_argument("--given", **options)

    monkeypatch.setattr("django_mcp.server.commands.get_commands", lambda: {"tell": Command()})
    server = MCPServer("test")
    server.command("tell", permission=anybody, arguments=["--given"])
    (tool,) = client_of(server).list_tools()
    assert tool["inputSchema"]["properties"]["given"].get("description") == said


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_command_is_run_with_what_was_given(revision, db):
    given = {"items": ["a", "b c"], "since": "2026-01-31", "size": "large", "dry_run": True}
    answer = client_of(serve(), revision).tool(
        "restock", supplier="ACME", most=3, mail=False, tag=["x"], **given
    )
    assert answer.assert_ok().text.splitlines() == [
        "supplier='ACME'",
        "items=['a', 'b c']",
        "since=datetime.date(2026, 1, 31)",
        "most=3",
        "size='large'",
        "dry_run=True",
        "mail=False",
        "tag=['x']",
        "interactive=False",
        "secret='kept'",
        "settings=None",
        "nearly done",
    ]


def test_what_was_left_out_has_the_default_of_the_command():
    lines = client_of(serve()).tool("restock", supplier="ACME").assert_ok().text.splitlines()
    assert {"items=[]", "since=None", "most=10", "dry_run=False", "mail=True", "tag=None"} <= {
        *lines
    }


def test_what_it_writes_is_sent_line_by_line():
    client = MCPClient(serve(), revision="2026-07-28", log_level="info")
    said = client.tool("restock", supplier="ACME").said
    messages = [each["params"] for each in said if each["method"] == "notifications/message"]
    assert messages[0] == {"level": "info", "data": "supplier='ACME'"}
    assert messages[-1] == {"level": "warning", "data": "nearly done"}
    assert len(messages) == 12


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"supplier": "nobody"}, "Nobody delivers."),
        ({"supplier": "exit"}, "nearly done"),
        ({"supplier": "crash"}, "The tool failed. (reference "),
        ({"supplier": "ACME", "since": "yesterday"}, "since: Invalid isoformat string"),
        ({"supplier": "ACME", "size": "medium"}, "size: Input should be 'small' or 'large'"),
        ({"supplier": "ACME", "secret": "mine"}, "secret: unknown argument"),
        ({"supplier": "ACME", "settings": "evil"}, "settings: unknown argument"),
        ({}, "supplier: this argument is required"),
    ],
)
def test_what_goes_wrong_is_told(given, said):
    client_of(serve()).tool("restock", **given).assert_failed(said)


def test_a_value_is_not_taken_for_a_file_of_arguments(monkeypatch):
    made = BaseCommand.create_parser

    def create_parser(self, *names, **options):
        return made(self, *names, fromfile_prefix_chars="@", **options)

    monkeypatch.setattr(BaseCommand, "create_parser", create_parser)
    client = client_of(serve())
    for given in ({"supplier": "@/etc/hosts"}, {"supplier": "ACME", "items": ["@/etc/hosts"]}):
        client.tool("restock", **given).assert_failed("a value must not begin with @.")


@pytest.mark.parametrize("value", ["--secret=mine", "--settings=evil", "-h", "--", "-x"])
def test_a_value_is_not_taken_for_an_option(value):
    client = client_of(serve())
    for given in ({"supplier": value}, {"supplier": "ACME", "items": ["a", value]}):
        client.tool("restock", **given).assert_failed("a value must not begin with a hyphen")
    # What does not go through the parser may.
    client.tool("restock", supplier="ACME", tag=[value]).assert_contains(f"tag=[{value!r}]")


def test_only_the_end_of_a_long_output_is_kept():
    answer = client_of(serve()).tool("restock", supplier="much").assert_ok()
    assert len(answer.text) < MAX_OUTPUT_CHARACTERS + 100
    assert answer.text.startswith("x")
    assert answer.text.endswith("nearly done")


class Choosy(BaseCommand):
    """Has switches of which one is needed, and none goes with another."""

    def add_arguments(self, parser):
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--all", action="store_true", help="%(dest)s of %(type)s")
        which.add_argument("--none", action="store_true", help=argparse.SUPPRESS)
        parser.add_argument("--size", choices=["s", "l"], help="One of %(choices)s.")

    def handle(self, *args, **options):
        self.stdout.write(f"all={options['all']} none={options['none']}")


@pytest.fixture
def choosy(monkeypatch):
    for module in (commands, management):
        monkeypatch.setattr(module, "get_commands", lambda: {"choosy": Choosy()})
    server = MCPServer("test")
    server.command("choosy", permission=anybody, arguments=["--all", "--none", "--size"])
    return client_of(server)


def test_helps_say_what_the_command_line_says(choosy):
    (tool,) = choosy.list_tools()
    properties = tool["inputSchema"]["properties"]
    assert properties["all"]["description"] == "all of None"
    assert properties["size"]["description"] == "One of s, l."
    assert "description" not in properties["none"]


def test_of_switches_that_exclude_each_other_one_is_given(choosy):
    for given in ({"none": True}, {"none": True, "all": False}):
        choosy.tool("choosy", **given).assert_contains("all=False none=True")
    choosy.tool("choosy", all=True, none=True).assert_failed("not allowed with argument")
    choosy.tool("choosy").assert_failed("is required")


def test_a_line_without_an_end_is_not_kept_whole():
    class Ctx:
        cancelled = False
        said = []

        def log(self, level, text):
            self.said.append(text)

    output = commands._Output(Ctx(), "info")
    for _ in range(10):
        output.write("x" * MAX_OUTPUT_CHARACTERS)
    output.write("y\n")
    assert Ctx.said == ["x" * MAX_OUTPUT_CHARACTERS + "y"]


def test_a_command_that_is_told_to_stop_ends_at_its_next_word(monkeypatch):
    """Also within a line."""
    stops = iter([False] * 100)
    monkeypatch.setattr(Context, "cancelled", property(lambda ctx: next(stops, True)))
    client_of(serve()).tool("restock", supplier="dots").assert_error(-32800)
    assert next(stops, None) is None


def test_a_command_has_a_permission():
    with pytest.raises(TypeError, match="permission"):
        MCPServer("test").command("restock", arguments=ARGUMENTS)  # type: ignore[call-arg]
    server = serve(permission=lambda user: user.is_staff)
    client = client_of(server).as_user(AnonymousUser())
    assert client.list_tools() == []
    client.tool("restock", supplier="ACME").assert_error(-32602, "Unknown tool")


def test_errors_call_it_a_command():
    with pytest.raises(RegistrationError, match="the command restock"):
        serve(scopes=["no scope"])


@pytest.mark.parametrize(
    ("name", "arguments", "cure"),
    [
        ("restok", [], "`manage.py help` shows those"),
        ("restock", ["supplier", "--sinse"], "It has: supplier, items, --since, --most"),
        ("restock", ["--since"], "does not run without: supplier"),
        ("restock", ["supplier", "--settings"], "has no argument '--settings'"),
        ("restock", ["supplier", "--constant"], r"`call_command\(\.\.\.\)`"),
    ],
)
def test_what_cannot_work_is_refused_with_the_cure(name, arguments, cure):
    with pytest.raises(RegistrationError, match=cure):
        MCPServer("test").command(name, permission=anybody, arguments=arguments)
