"""Sites without tenants, which are in no partition; ``tests/tenants`` has those with them."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from django_mcp.auth import Principal
from django_mcp.checks import check_partitions
from django_mcp.current_partition import current_partition, noted_partition
from django_mcp.partitions import DatabasePartitions, PartitionRouter, enter_partition, here
from django_mcp.store.database import alias
from django_mcp.store.ledger import Ledger, ledger
from django_mcp.store.partitioned_ledger import PartitionedLedger
from django_mcp.store.sessions.finding import digest


class Somebody:
    pk = 7


class Aliases(DatabasePartitions):
    def of_request(self, request: object) -> str | None:
        return None


def test_there_are_none_by_default():
    assert (current_partition(), here(), alias()) == ("", "", "default")
    assert check_partitions() == []
    assert type(ledger()) is Ledger
    assert PartitionRouter().db_for_read(Principal) is None


def test_to_enter_one_then_is_an_error():
    with pytest.raises(ImproperlyConfigured, match="PARTITION"), enter_partition("acme"):
        pass
    with pytest.raises(CommandError, match="PARTITION"):
        call_command("mcp", "--partition=acme", "list")


def test_what_names_something_is_another_in_each():
    def names() -> tuple[str, ...]:
        limited = Principal(Somebody(), limited_as="shared")
        return digest("secret"), Principal(Somebody()).limit_key, limited.limit_key

    found = [names()]
    for partition in ("acme", "globex"):
        with noted_partition(partition):
            found.append(names())
            assert PartitionRouter().db_for_write(Principal) == partition
            assert Principal(None).limit_key == ""  # of whom nothing is known the address is
    assert all(len({*each}) == len(found) for each in zip(*found, strict=True))
    assert found[0] == names()


def test_a_database_for_each_is_named_by_its_alias(settings):
    path = f"{__name__}.Aliases"
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"PARTITION": path}
    assert check_partitions() == []
    assert type(ledger()) is PartitionedLedger
    assert alias() == "default"
    with enter_partition("acme"):
        assert alias() == here() == "acme"
    assert list(Aliases().all()) == []
