"""Writes an invented desk into the database."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from django.db import transaction

from example_project.support.demo_data.stories import Storyteller
from example_project.support.demo_data.topics import topics
from example_project.support.demo_data.vocabulary import company, person
from example_project.support.models import Article, Comment, Customer, Refund, Ticket

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

    from example_project.support.demo_data.accounts import Accounts

TICKETS_PER_CUSTOMER = 6
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    """How many rows of each kind were written."""

    customers: int
    tickets: int
    comments: int
    articles: int


def is_empty() -> bool:
    """Whether nobody has put anything on the desk yet."""
    return not any(model.objects.exists() for model in (Ticket, Customer, Article))


def clear() -> None:
    """Remove every row of the desk; users and groups stay."""
    for model in (Refund, Comment, Ticket, Customer, Article):
        model.objects.all().delete()


@transaction.atomic
def seed_desk(*, tickets: int, seed: int, accounts: Accounts, until: datetime) -> Seeded:
    """Fill empty tables; the same arguments give the same desk."""
    random = Random(seed)
    articles = _write_articles()
    customers = _write_customers(
        random, number=max(tickets // TICKETS_PER_CUSTOMER, 2), users=accounts.customers
    )
    storyteller = Storyteller(
        random=random, customers=customers, agents=accounts.agents, until=until
    )
    comments = _write_stories(storyteller, number=tickets)
    return Seeded(customers=len(customers), tickets=tickets, comments=comments, articles=articles)


def _write_articles() -> int:
    articles = [
        Article(slug=text.slug, title=text.title, tags=text.tags, body=text.body.strip())
        for topic in topics()
        for text in topic.articles
    ]
    Article.objects.bulk_create(articles)
    return len(articles)


def _write_customers(random: Random, *, number: int, users: list[User]) -> list[Customer]:
    namesakes: Counter[str] = Counter()
    customers = [_customer(random, namesakes) for _ in range(number)]
    for customer, user in zip(customers, users, strict=False):
        customer.user = user
    Customer.objects.bulk_create(customers, batch_size=BATCH)
    # Read again: not every database says which keys a bulk insert has given.
    return list(Customer.objects.order_by("pk"))


def _customer(random: Random, namesakes: Counter[str]) -> Customer:
    first, last = person(random)
    address = f"{first}.{last}".lower()
    namesakes[address] += 1
    if namesakes[address] > 1:
        address += str(namesakes[address])
    return Customer(name=f"{first} {last}", email=f"{address}@example.com", company=company(random))


def _write_stories(storyteller: Storyteller, *, number: int) -> int:
    stories = list(storyteller.tell(number))
    Ticket.objects.bulk_create([story.ticket for story in stories], batch_size=BATCH)
    # The tables were empty and keys ascend, so that this is the order of the stories.
    keys = Ticket.objects.order_by("pk").values_list("pk", flat=True)
    comments = []
    for key, story in zip(keys, stories, strict=True):
        for comment in story.comments:
            comment.ticket_id = key
        comments += story.comments
    Comment.objects.bulk_create(comments, batch_size=BATCH)
    return len(comments)
