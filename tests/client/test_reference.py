"""The reference of the client and its code agree."""

from __future__ import annotations

import dataclasses
import inspect

from django_mcp import client
from django_mcp.client import Change, Client, ClientError, Limits
from tests.docs.tables import code, first_column, literal, rows, section
from tests.docs.test_reference import bare, options

PAGE = "docs/reference/client.md"


def test_every_option_is_documented() -> None:
    table = [row for row in rows(section(PAGE, "## Client")) if len(row) == 3]
    assert {code(row[0]): code(row[1]) for row in table} == options(Client, without=("url",))


def test_every_member_is_documented() -> None:
    table = {code(row[0]) for row in rows(section(PAGE, "## Client")) if len(row) == 2}
    names = [name for name in dir(Client) if not name.startswith("_")]
    members = {name: getattr(Client, name) for name in names}
    assert table == {
        f"{name}{bare(member)}" if inspect.isfunction(member) else name
        for name, member in members.items()
    }


def test_every_limit_is_documented() -> None:
    table = {code(row[0]): literal(row[1]) for row in rows(section(PAGE, "## Limits"))}
    assert table == {field.name: field.default for field in dataclasses.fields(Limits)}


def test_every_attribute_of_a_change_is_documented() -> None:
    fields = {field.name for field in dataclasses.fields(Change)}
    assert set(first_column(section(PAGE, "## Change"))) == fields


def test_every_error_is_documented() -> None:
    exported = {name for name in client.__all__ if is_error(getattr(client, name))}
    assert set(first_column(section(PAGE, "## Errors"))) == exported - {"ClientError"}


def is_error(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, ClientError)
