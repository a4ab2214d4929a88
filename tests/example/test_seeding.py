from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db.models import F, Q

from example_project.support.demo_data.accounts import ensure_accounts
from example_project.support.demo_data.seeding import clear, seed_desk
from example_project.support.demo_data.topics import topics
from example_project.support.models import Article, Comment, Customer, Ticket

from .conftest import TICKETS

pytestmark = pytest.mark.django_db

UNTIL = datetime(2026, 3, 2, 12, tzinfo=UTC)


def seed(**options) -> str:
    output = StringIO()
    call_command("seed_support", stdout=output, **options)
    return output.getvalue()


def desk(*, seed: int) -> list[tuple[Any, ...]]:
    """Everything that a fresh desk of 40 tickets holds, without keys."""
    clear()
    seed_desk(tickets=40, seed=seed, accounts=ensure_accounts(), until=UNTIL)
    tickets = Ticket.objects.order_by("pk").values_list(
        "subject", "body", "status", "priority", "customer__email", "assignee__username", "created"
    )
    comments = Comment.objects.order_by("pk").values_list("body", "internal", "created")
    return [*tickets, *comments]


def test_the_same_seed_gives_the_same_desk():
    assert desk(seed=7) == desk(seed=7)


def test_another_seed_gives_another_desk():
    assert desk(seed=7) != desk(seed=8)


def test_second_run_does_nothing():
    before = list(Ticket.objects.values_list("pk", "updated"))
    assert "not empty" in seed(tickets=10)
    assert list(Ticket.objects.values_list("pk", "updated")) == before
    assert len(before) == TICKETS


def test_reset_begins_anew_and_keeps_the_users():
    User.objects.filter(username="agent").update(first_name="Kept")
    assert "Wrote 20 tickets" in seed(tickets=20, reset=True)
    assert Ticket.objects.count() == 20
    assert User.objects.get(username="agent").first_name == "Kept"


def test_rows_of_somebody_else_are_not_mixed_with_invented_ones():
    clear()
    Customer.objects.create(name="Somebody", email="somebody@example.com")
    assert "not empty" in seed(tickets=10)
    assert not Ticket.objects.exists()


def test_no_tickets_is_a_mistake():
    with pytest.raises(CommandError, match="at least 1"):
        seed(tickets=0)


def test_every_gap_is_filled():
    gaps = Q(body__contains="{") | Q(body__contains="}")
    assert not Ticket.objects.filter(gaps | Q(subject__contains="{")).exists()
    assert not Comment.objects.filter(gaps).exists()


def test_history_is_in_order():
    assert not Comment.objects.filter(created__lt=F("ticket__created")).exists()
    assert not Comment.objects.filter(created__gt=F("ticket__updated")).exists()


def test_last_word_fits_the_status():
    for ticket in Ticket.objects.filter(status="pending"):
        assert not ticket.comments.reverse()[0].from_customer
    for ticket in Ticket.objects.filter(status__in=["solved", "closed"]):
        assert not ticket.comments.reverse()[0].from_customer
        assert ticket.assignee is not None


def test_articles_are_those_of_the_topics():
    slugs = {article.slug for topic in topics() for article in topic.articles}
    assert set(Article.objects.values_list("slug", flat=True)) == slugs
    assert len(slugs) >= 30


def test_all_addresses_are_examples():
    assert not Customer.objects.exclude(email__endswith="@example.com").exists()
    assert not User.objects.exclude(email__endswith="@example.com").exists()


def test_customers_who_log_in_have_tickets():
    for name in ("customer", "customer2"):
        assert Ticket.objects.filter(customer__user__username=name).count() >= 5


def test_agents_may_more_than_customers():
    agents = Group.objects.get(name="Support agents").permissions
    customers = Group.objects.get(name="Customers").permissions
    codenames = set(customers.values_list("codename", flat=True))
    assert codenames == {"view_ticket", "view_comment", "add_comment", "view_article"}
    assert agents.filter(codename="view_all_tickets").exists()


def test_roles_of_the_users():
    admin = User.objects.get(username="admin")
    assert admin.is_superuser
    assert admin.check_password("demo")
    agent = User.objects.get(username="agent")
    assert agent.is_staff
    assert not agent.is_superuser
    assert not User.objects.get(username="customer").is_staff


def test_without_debug_the_password_cannot_be_guessed(settings):
    settings.DEBUG = False
    User.objects.all().delete()
    first = ensure_accounts().password
    User.objects.all().delete()
    assert len(first) >= 16
    assert first != ensure_accounts().password


def test_password_can_be_chosen(monkeypatch, settings):
    settings.DEBUG = False
    monkeypatch.setenv("DEMO_PASSWORD", "chosen")
    User.objects.all().delete()
    assert "password: chosen" in seed(tickets=1)
    assert User.objects.get(username="agent2").check_password("chosen")


def test_existing_users_keep_their_password():
    assert ensure_accounts().password == ""
    assert "password" not in seed(tickets=10)
