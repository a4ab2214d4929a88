from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_mcp.testing import Answer, MCPClient
from example_project.support import desk
from example_project.support.models import Article, Comment, Refund, Ticket

pytestmark = pytest.mark.django_db

READING = {
    *("list_articles", "read_article", "read_ticket"),
    *("search_articles", "search_tickets", "suggest_articles"),
}
WRITING = {"assign_ticket", "close_tickets", "refund_ticket", "set_ticket_status"}
AGENTS = {*WRITING, "draft_reply", "ticket_statistics"}
DERIVED_READING = {
    *("find_comments", "find_customers", "get_comment", "get_customer", "get_refund"),
    *("list_refunds", "stale_articles"),
}
DERIVED_WRITING = {"create_customer", "update_customer", "write_article"}
DERIVED = DERIVED_READING | DERIVED_WRITING
"""Made of a model, an admin, a form, an API, a command: their arguments are named as fields are."""
INVALID_PARAMS = -32602


def data(answer: Answer) -> Any:
    """What the tool returned, in a revision with structured content and in one without."""
    return json.loads(answer.assert_ok().text)


@pytest.fixture
def own(customer) -> Ticket:
    return Ticket.objects.create(
        subject="Purple zebra lost", body="Parcel HB-1 never came.", customer=customer.customer
    )


@pytest.fixture
def foreign(customer) -> Ticket:
    return Ticket.objects.exclude(customer__user=customer)[0]


def test_each_role_has_its_tools(as_agent, as_customer):
    agents = {tool["name"] for tool in as_agent.list_tools()}
    customers = {tool["name"] for tool in as_customer.list_tools()}
    assert agents == READING | AGENTS | DERIVED | {"reply_to_ticket", "show_board"}
    assert customers == READING | {"reply_to_ticket", "show_board"}


@pytest.mark.parametrize("name", sorted(AGENTS | DERIVED))
def test_hidden_tools_are_refused_as_if_unknown(as_customer, name):
    as_customer.tool(name, ticket_id=1).assert_error(INVALID_PARAMS, f"Unknown tool: {name}")


def test_every_tool_says_what_it_does_and_takes(agent):
    for tool in MCPClient().as_user(agent).list_tools():
        assert len(tool["description"]) > 40, tool["name"]
        assert "Args:" not in tool["description"]
        assert tool["annotations"]["readOnlyHint"] is (
            tool["name"] not in WRITING | DERIVED_WRITING | {"reply_to_ticket"}
        )
        if tool["name"] in DERIVED:
            continue
        for name, schema in tool["inputSchema"]["properties"].items():
            described = schema.get("description") or "$ref" in schema
            assert described, (tool["name"], name)


def test_agents_search_everybodys_tickets(as_agent, own):
    found = data(as_agent.tool("search_tickets", text="zebra PURPLE"))
    assert found["found"] == 1
    summary = found["tickets"][0]
    assert (summary["id"], summary["subject"]) == (own.pk, "Purple zebra lost")
    assert (summary["status"], summary["priority"]) == ("open", "normal")
    assert (summary["customer"], summary["assignee"]) == (own.customer.name, None)


def test_customers_search_their_own(as_customer, customer):
    mine = Ticket.objects.filter(customer__user=customer)
    found = data(as_customer.tool("search_tickets", limit=100))
    assert found["found"] == mine.count()
    assert {ticket["id"] for ticket in found["tickets"]} == set(mine.values_list("pk", flat=True))


def test_search_by_status_and_priority(as_agent):
    found = data(as_agent.tool("search_tickets", status="solved", priority="high", limit=100))
    expected = Ticket.objects.filter(status="solved", priority=Ticket.Priority.HIGH)
    assert found["found"] == expected.count() > 0
    assert [ticket["id"] for ticket in found["tickets"]] == [t.pk for t in expected[:100]]


@pytest.mark.parametrize("name", ["me", "agent"])
def test_search_by_assignee(as_agent, agent, name):
    found = data(as_agent.tool("search_tickets", assignee=name, limit=5))
    assert found["found"] == agent.assigned_tickets.count() > 0
    assert [ticket["assignee"] for ticket in found["tickets"]] == ["agent"] * 5


def test_search_what_nobody_has(as_agent):
    found = data(as_agent.tool("search_tickets", assignee="nobody"))
    assert found["found"] == Ticket.objects.filter(assignee=None).count() > 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"status": "lost"}, "status"),
        ({"colour": "blue"}, "colour: unknown argument"),
    ],
)
def test_bad_arguments_are_explained(as_agent, arguments, problem):
    as_agent.tool("search_tickets", **arguments).assert_failed(problem)


@pytest.mark.parametrize(
    ("tool", "few", "many"),
    [
        ("search_tickets", {"limit": 1}, {"limit": 100}),
        ("ticket_statistics", {"weeks": 1}, {"weeks": 52}),
        ("search_articles", {"text": "order", "limit": 1}, {"text": "order", "limit": 20}),
    ],
)
def test_more_rows_cost_no_more_queries(agent, tool, few, many):
    client = MCPClient(revision="2026-07-28").as_user(agent)
    client.tool(tool, **few).assert_ok()  # the user remembers its permissions from here on
    counts = []
    for arguments in (few, many):
        with CaptureQueriesContext(connection) as queries:
            client.tool(tool, **arguments).assert_ok()
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 4


def test_read_ticket_with_its_conversation(as_agent, own, agent):
    desk.reply(own, author=agent, body="Ask the warehouse.", internal=True)
    desk.reply(own, author=agent, body="We are looking for it.")
    desk.reply(own, author=own.customer, body="Thank you.")
    ticket = data(as_agent.tool("read_ticket", ticket_id=own.pk))
    assert ticket["body"] == "Parcel HB-1 never came."
    assert [(c["author"], c["from_customer"], c["internal"]) for c in ticket["comments"]] == [
        ("agent", False, True),
        ("agent", False, False),
        (own.customer.name, True, False),
    ]


def test_customers_do_not_see_internal_notes(as_customer, own, agent):
    desk.reply(own, author=agent, body="Ask the warehouse.", internal=True)
    desk.reply(own, author=agent, body="We are looking for it.")
    answer = as_customer.tool("read_ticket", ticket_id=own.pk)
    assert [comment["body"] for comment in data(answer)["comments"]] == ["We are looking for it."]


def test_foreign_tickets_and_missing_ones_look_alike(as_customer, foreign):
    for number in (foreign.pk, 99_999_999):
        sentence = f"There is no ticket {number} that you may see."
        as_customer.tool("read_ticket", ticket_id=number).assert_failed(sentence)
        as_customer.tool("reply_to_ticket", ticket_id=number, body="x").assert_failed(sentence)
        suggested = as_customer.tool("suggest_articles", ticket_id=number)
        suggested.assert_failed("No Ticket matches the given query.")


def test_agent_replies(as_agent, own):
    ticket = data(as_agent.tool("reply_to_ticket", ticket_id=own.pk, body="We look for it."))
    assert ticket["status"] == "pending"
    assert ticket["comments"][-1]["body"] == "We look for it."
    comment = Comment.objects.get(ticket=own)
    assert (comment.author, comment.internal) == ("agent", False)


def test_characters_that_a_database_cannot_store(as_agent, own):
    ticket = data(as_agent.tool("reply_to_ticket", ticket_id=own.pk, body="a\x00b \U0001f993"))
    assert ticket["comments"][-1]["body"] == "ab \U0001f993"
    assert data(as_agent.tool("search_tickets", text="\x00"))["found"] == Ticket.objects.count()


def test_agent_writes_a_note(as_agent, own):
    answer = as_agent.tool("reply_to_ticket", ticket_id=own.pk, body="Hm.", internal=True)
    assert data(answer)["status"] == "open"
    assert Comment.objects.get(ticket=own).internal


def test_customer_answers_as_the_customer(as_customer, own):
    desk.set_status(own, status=Ticket.Status.SOLVED)
    ticket = data(as_customer.tool("reply_to_ticket", ticket_id=own.pk, body="Still lost."))
    assert ticket["status"] == "open"
    comment = Comment.objects.get(ticket=own)
    assert (comment.customer, comment.user) == (own.customer, None)


def test_customer_writes_no_notes(as_customer, own):
    answer = as_customer.tool("reply_to_ticket", ticket_id=own.pk, body="Hm.", internal=True)
    answer.assert_failed("Only agents write internal notes.")
    assert not own.comments.exists()


def test_closed_ticket_takes_no_reply(as_agent, own):
    desk.set_status(own, status=Ticket.Status.CLOSED)
    answer = as_agent.tool("reply_to_ticket", ticket_id=own.pk, body="Too late.")
    answer.assert_failed(f"Ticket {own.pk} is closed")
    assert not own.comments.exists()


@pytest.mark.parametrize(
    ("name", "expected"), [("agent2", "agent2"), ("me", "agent"), ("nobody", None)]
)
def test_a_ticket_is_assigned_and_taken_back(as_agent, own, name, expected):
    summary = data(as_agent.tool("assign_ticket", ticket_id=own.pk, assignee=name))
    assert summary["assignee"] == expected
    own.refresh_from_db()
    assert (own.assignee.username if own.assignee else None) == expected


def test_tickets_are_given_to_agents_only(as_agent, own):
    answer = as_agent.tool("assign_ticket", ticket_id=own.pk, assignee="customer")
    answer.assert_failed("The agents are: admin, agent, agent2, agent3.")
    own.refresh_from_db()
    assert own.assignee is None


def test_set_status(as_agent, own):
    summary = data(as_agent.tool("set_ticket_status", ticket_id=own.pk, status="solved"))
    assert summary["status"] == "solved"
    own.refresh_from_db()
    assert own.status == "solved"


def test_statistics(as_agent):
    figures = data(as_agent.tool("ticket_statistics", weeks=4))
    assert sum(figures["by_status"].values()) == Ticket.objects.count()
    assert figures["by_status"]["open"] == Ticket.objects.filter(status="open").count()
    assert len(figures["weeks"]) == 4
    assert set(figures["weeks"][0]["by_status"]) == {"open", "pending", "solved", "closed"}


def test_search_articles(as_customer):
    articles = data(as_customer.tool("search_articles", text="charged twice", limit=2))
    best = articles[0]
    assert best["slug"] == "why-was-i-charged-twice"
    assert best["uri"] == "article://why-was-i-charged-twice"
    assert 0.2 < best["score"] <= 1
    assert best["excerpt"].startswith("Two payments for one invoice")


def test_suggest_articles(as_agent, customer):
    ticket = Ticket.objects.create(
        subject="Webhook signature does not match",
        body="We compute another signature from the secret.",
        customer=customer.customer,
    )
    articles = data(as_agent.tool("suggest_articles", ticket_id=ticket.pk, limit=1))
    assert [article["slug"] for article in articles] == ["verify-webhook-signatures"]


def test_read_article(as_customer):
    article = data(as_customer.tool("read_article", slug="api-pagination"))
    assert article["title"] == "Walk through long lists with cursors"
    assert article["tags"] == ["api", "pagination", "cursor", "records"]


def test_unknown_article(as_customer):
    as_customer.tool("read_article", slug="nonsense").assert_failed("search_articles finds those")


def test_structured_content_is_the_text(agent, own):
    answer = MCPClient(revision="2025-11-25").as_user(agent).tool("read_ticket", ticket_id=own.pk)
    assert answer.structured == data(answer)
    assert answer.structured["subject"] == "Purple zebra lost"


def test_agents_see_refunds_as_the_bookkeeping_does(as_agent, agent, own):
    for amount in (5, 7):
        Refund.objects.create(ticket=own, user=agent, amount=amount, reason="late")
    listed = data(as_agent.tool("list_refunds", search="zebra", ordering="amount"))
    assert [each["amount"] for each in listed["results"]] == ["5.00", "7.00"]
    refund = data(as_agent.tool("get_refund", id=listed["results"][0]["id"]))
    assert refund["customer"] == own.customer.name


def test_agents_search_in_what_was_said_as_in_the_admin(as_agent, agent, own):
    desk.reply(own, author=agent, body="Ask the zebra keeper.", internal=True)
    (found,) = data(as_agent.tool("find_comments", search="zebra keeper"))["items"]
    comment = data(as_agent.tool("get_comment", id=found["id"]))
    assert (comment["body"], comment["internal"]) == ("Ask the zebra keeper.", True)


def test_agents_find_articles_that_nobody_has_looked_after(as_agent):
    Article.objects.filter(slug="api-pagination").update(updated="2020-05-01T12:00Z")
    lines = as_agent.tool("stale_articles", days=365).assert_ok().text.splitlines()
    assert lines == [
        "api-pagination: Walk through long lists with cursors, 2020-05-01",
        "1 articles in all",
    ]
    as_agent.tool("stale_articles", days=-1).assert_failed("Between 0 and 36500 days")


def test_the_knowledge_base_can_be_had_alone(agent):
    client = MCPClient().as_user(agent)
    client.headers |= {"X-MCP-Toolsets": "articles", "X-MCP-Readonly": "1"}
    names = {tool["name"] for tool in client.list_tools()}
    assert names == {
        *("list_articles", "read_article", "search_articles", "stale_articles"),
        "suggest_articles",
    }
