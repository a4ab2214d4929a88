from __future__ import annotations

import json

import pytest

from example_project.support.clients import client_lines
from example_project.support.models import Ticket

pytestmark = pytest.mark.django_db

ENDPOINT = "http://127.0.0.1:8000/mcp"


def test_landing_page_says_where_the_endpoint_is(client):
    page = client.get("/", headers={"Host": "127.0.0.1:8000"}).text
    assert ENDPOINT in page
    assert f"claude mcp add --transport http support {ENDPOINT}" in page
    assert f"{Ticket.objects.unfinished().count()} unfinished tickets" in page
    assert "/admin/" in page


def test_landing_page_has_something_to_try(client):
    page = client.get("/").text
    ticket = Ticket.objects.filter(status="open", paid__gt=0)[0]
    assert f"Refund ticket {ticket.pk}." in page
    assert f"ticket://{ticket.pk}" in page
    assert f"/admin/support/ticket/{ticket.pk}/change/" in page
    Ticket.objects.update(paid=None)
    page = client.get("/").text
    assert "Close all tickets" in page
    assert "Refund ticket" not in page


def test_landing_page_loads_nothing_from_elsewhere(client):
    page = client.get("/").text
    assert "src=" not in page
    assert "@import" not in page
    assert page.count("<link") == 1  # the empty icon


@pytest.mark.parametrize(
    ("debug", "sentence"), [(True, "needs no token"), (False, "Send a bearer")]
)
def test_landing_page_says_who_gets_in(client, settings, debug, sentence):
    settings.DEBUG = debug
    assert sentence in client.get("/").text


def test_one_line_for_each_client():
    claude, cursor, code = client_lines(ENDPOINT)
    assert claude.line == "claude mcp add --transport http support http://127.0.0.1:8000/mcp"
    assert json.loads(cursor.line) == {"mcpServers": {"support": {"url": ENDPOINT}}}
    command, option, quoted = code.line.split(" ", 2)
    assert (command, option) == ("code", "--add-mcp")
    assert json.loads(quoted.strip("'")) == {"name": "support", "type": "http", "url": ENDPOINT}
