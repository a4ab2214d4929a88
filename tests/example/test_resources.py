from __future__ import annotations

import json

import pytest

from django_mcp.testing import MCPClient
from example_project.support import desk
from example_project.support.models import Article, Ticket

pytestmark = pytest.mark.django_db


def uris(client: MCPClient) -> list[str]:
    return [resource["uri"] for resource in client.list_resources()]


def not_found(client: MCPClient) -> int:
    return -32602 if client.revision.modern else -32002


def test_articles_and_tickets_have_templates(as_customer):
    templates = [each["uriTemplate"] for each in as_customer.list_resource_templates()]
    assert templates == ["article://{slug}", "ticket://{id}"]


def test_agents_list_all_open_tickets_newest_first(as_agent, settings):
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"PAGE_SIZE": 7}
    opened = Ticket.objects.filter(status="open").order_by("-pk").values_list("pk", flat=True)
    listed = [uri for uri in uris(as_agent) if uri.startswith("ticket://")]
    assert listed == [f"ticket://{pk}" for pk in opened]
    assert len(listed) > 7


def test_customers_list_their_own_open_tickets(as_customer, customer):
    ticket = Ticket.objects.create(subject="Mine", body="-", customer=customer.customer)
    opened = Ticket.objects.filter(status="open", customer__user=customer)
    listed = {uri for uri in uris(as_customer) if uri.startswith("ticket://")}
    assert listed == {f"ticket://{pk}" for pk in opened.values_list("pk", flat=True)}
    assert f"ticket://{ticket.pk}" in listed


def test_everybody_lists_the_articles_and_the_guide(as_customer):
    listed = uris(as_customer)
    slugs = Article.objects.values_list("slug", flat=True)
    assert {f"article://{slug}" for slug in slugs} <= set(listed)
    assert "desk://guide" in listed
    assert len(listed) == len(set(listed))


def test_who_follows_no_cursor_sees_articles_and_tickets_too(as_customer):
    first = as_customer.request("resources/list").result["resources"]
    schemes = [resource["uri"].partition("://")[0] for resource in first]
    assert list(dict.fromkeys(schemes)) == ["desk", "article", "ticket"]


def test_read_the_guide(as_customer):
    contents = as_customer.read("desk://guide").result["contents"][0]
    assert contents["mimeType"] == "text/markdown"
    assert contents["text"].startswith("# How this desk works")


def test_read_an_article(as_customer):
    contents = as_customer.read("article://card-declined").result["contents"][0]
    assert contents["uri"] == "article://card-declined"
    assert contents["mimeType"] == "text/markdown"
    assert contents["text"].startswith("# My card is declined at renewal\n\nA declined card")


def test_read_a_ticket(as_customer, customer, agent):
    ticket = Ticket.objects.create(subject="Mine", body="Help.", customer=customer.customer)
    desk.reply(ticket, author=agent, body="Secret.", internal=True)
    contents = as_customer.read(f"ticket://{ticket.pk}").result["contents"][0]
    assert contents["mimeType"] == "application/json"
    read = json.loads(contents["text"])
    assert (read["subject"], read["body"], read["comments"]) == ("Mine", "Help.", [])


def test_agents_read_notes_too(as_agent, customer, agent):
    ticket = Ticket.objects.create(subject="Theirs", body="Help.", customer=customer.customer)
    desk.reply(ticket, author=agent, body="Secret.", internal=True)
    as_agent.read(f"ticket://{ticket.pk}").assert_contains("Secret.")


def test_foreign_and_missing_tickets_are_not_found(as_customer, customer):
    foreign = Ticket.objects.exclude(customer__user=customer)[0]
    for uri in (
        f"ticket://{foreign.pk}",
        "ticket://99999999",
        "ticket://x",
        "ticket://-1",
        "ticket://" + "9" * 30,
    ):
        answer = as_customer.read(uri)
        answer.assert_error(not_found(as_customer), f"Resource not found: {uri}")
        assert answer.error["data"] == {"uri": uri}


def test_unknown_article(as_customer):
    as_customer.read("article://none").assert_error(not_found(as_customer), "Resource not found")
