from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from example_project.support.models import Article, Comment, Ticket

pytestmark = pytest.mark.django_db

LISTS = ["ticket", "customer", "comment", "article"]


@pytest.fixture
def as_admin(client):
    client.force_login(User.objects.get(username="admin"))
    return client


def changelist(model: str) -> str:
    return reverse(f"admin:support_{model}_changelist")


def queries(client, url: str) -> int:
    with CaptureQueriesContext(connection) as context:
        assert client.get(url).status_code == 200
    return len(context)


@pytest.mark.parametrize("model", LISTS)
def test_lists_cost_the_same_at_any_length(as_admin, model):
    many = queries(as_admin, changelist(model))
    few = queries(as_admin, f"{changelist(model)}?id__lte=3")
    assert many <= few + 1  # a filtered list counts no more than the whole


@pytest.mark.parametrize("model", LISTS)
def test_lists_can_be_searched(as_admin, model):
    response = as_admin.get(changelist(model), {"q": "invoice refund"})
    assert response.status_code == 200


def test_ticket_list_shows_its_counts(as_admin):
    ticket = Comment.objects.all()[0].ticket
    response = as_admin.get(changelist("ticket"), {"id": ticket.pk})
    (row,) = response.context["cl"].result_list
    assert row.number_of_comments == ticket.comments.count() > 0


def test_customer_list_counts_unfinished_tickets(as_admin):
    ticket = Ticket.objects.unfinished()[0]
    response = as_admin.get(changelist("customer"), {"id": ticket.customer_id})
    (row,) = response.context["cl"].result_list
    assert row.number_unfinished == ticket.customer.tickets.unfinished().count() > 0


def test_ticket_page_costs_the_same_for_any_conversation(as_admin, agent):
    ticket = Ticket.objects.filter(comments=None)[0]
    url = reverse("admin:support_ticket_change", args=[ticket.pk])
    empty = queries(as_admin, url)
    for number in range(6):
        ticket.comments.create(user=agent, body=f"Number {number}.")
    with CaptureQueriesContext(connection) as context:
        assert "Number 5." in as_admin.get(url).text
    # Autocomplete fields ask once for each row what they show.
    assert len(context) <= empty + 6


@pytest.mark.parametrize(
    ("action", "expected"), [("solve", "solved"), ("close", "closed"), ("take", None)]
)
def test_an_action_changes_the_chosen_tickets(as_admin, action, expected):
    tickets = Ticket.objects.filter(status="open")[:3]
    keys = [ticket.pk for ticket in tickets]
    as_admin.post(changelist("ticket"), {"action": action, "_selected_action": keys})
    changed = Ticket.objects.filter(pk__in=keys)
    if expected:
        assert {ticket.status for ticket in changed} == {expected}
    else:
        assert set(changed.values_list("assignee__username", flat=True)) == {"admin"}


def test_agents_have_the_desk_but_not_the_users(client, agent):
    client.force_login(agent)
    assert client.get(changelist("ticket")).status_code == 200
    assert client.get(reverse("admin:auth_user_changelist")).status_code == 403


def test_customers_have_no_admin(client, customer):
    client.force_login(customer)
    assert client.get(changelist("ticket")).status_code == 302


def test_article_leads_to_its_page(as_admin):
    article = Article.objects.all()[0]
    assert as_admin.get(article.get_absolute_url()).status_code == 200
