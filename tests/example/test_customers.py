"""The tools that are made of the model of customers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from django_mcp.testing import Answer
from example_project.support.models import Customer

pytestmark = pytest.mark.django_db


def data(answer: Answer) -> Any:
    return json.loads(answer.assert_ok().text)


def test_agents_find_customers_and_read_their_tickets(as_agent, customer):
    own = customer.customer
    (found,) = data(as_agent.tool("find_customers", email__iexact=own.email.upper()))["items"]
    assert found == {
        "id": own.pk, "name": own.name, "email": own.email, "company": own.company,
    }  # fmt: skip
    row = data(as_agent.tool("get_customer", id=own.pk))
    shown = [ticket["id"] for ticket in row["tickets"]]
    assert shown == list(own.tickets.values_list("pk", flat=True)[:50])


def test_agents_add_and_correct_customers(as_agent, agent):
    made = data(as_agent.tool("create_customer", name="Nora", email="nora@example.com"))
    as_agent.tool("create_customer", name="N", email="nora@example.com").assert_failed("email: ")
    version = made["row_version"]
    as_agent.tool(
        "update_customer", id=made["id"], company="Ibsen", row_version=version
    ).assert_ok()
    stale = as_agent.tool("update_customer", id=made["id"], name="N", row_version=version)
    stale.assert_failed("has changed since it was read")
    after = Customer.objects.get(pk=made["id"])
    assert (after.name, after.company, after.user) == ("Nora", "Ibsen", None)
    assert set(LogEntry.objects.values_list("user", flat=True)) == {agent.pk}


def test_customers_have_no_such_tools(as_customer):
    as_customer.tool("find_customers").assert_error(-32602, "Unknown tool: find_customers")
