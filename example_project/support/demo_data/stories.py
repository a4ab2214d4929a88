"""Invents one conversation after another: a ticket, and what was said about it since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Literal, TypeAlias

from example_project.support.demo_data.topics import Scenario, Topic, topics
from example_project.support.demo_data.vocabulary import gap_values
from example_project.support.models import Comment, Customer, Ticket

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.contrib.auth.models import User

Part: TypeAlias = Literal["note", "question", "answer", "reply", "thanks", "resolution"]

YEAR = timedelta(days=365)
STATUSES = [Ticket.Status.OPEN, Ticket.Status.PENDING, Ticket.Status.SOLVED, Ticket.Status.CLOSED]
# The older a ticket, the less likely is it that anything remains to be done: weights of the
# statuses above for tickets up to the age on the left.
STATUS_BY_AGE = [
    (timedelta(days=3), [60, 25, 15, 0]),
    (timedelta(days=14), [15, 25, 45, 15]),
    (timedelta.max, [1, 2, 12, 85]),
]
PRIORITIES = [
    Ticket.Priority.LOW, Ticket.Priority.NORMAL, Ticket.Priority.HIGH, Ticket.Priority.URGENT,
]  # fmt: skip
PRIORITY_WEIGHTS = [15, 60, 19, 6]
GREETINGS = ["Hello,", "Hi there,", "Good morning,", "Dear support team,", "Hello support,"]
CLOSINGS = ["Kind regards", "Thanks", "Best wishes", "Many thanks in advance", "Regards"]
THANKS = [
    "Thank you for the quick answer.",
    "That helps, many thanks.",
    "Understood. Thank you!",
    "Good to know, thanks.",
]
# The customers who can log in have more than chance would give them.
REGULARS_EVERY = 20


@dataclass(frozen=True, slots=True)
class Story:
    """A ticket and its comments, none of them saved."""

    ticket: Ticket
    comments: list[Comment]


@dataclass(slots=True)
class Storyteller:
    """Draws everything from one source of randomness, so that a seed fixes all of it."""

    random: Random
    customers: Sequence[Customer]
    agents: Sequence[User]
    until: datetime

    def tell(self, number: int) -> Iterator[Story]:
        """As many stories, oldest first."""
        for index, created in enumerate(self._moments(number)):
            yield self._story(self._customer(index), created)

    def _moments(self, number: int) -> list[datetime]:
        # The exponent makes recent weeks busier than those of a year ago.
        ages = [YEAR * self.random.random() ** 1.4 for _ in range(number)]
        return sorted(self.until - timedelta(minutes=5) - age for age in ages)

    def _customer(self, index: int) -> Customer:
        regulars = [customer for customer in self.customers if customer.user_id is not None]
        if regulars and index % REGULARS_EVERY == 0:
            return regulars[index // REGULARS_EVERY % len(regulars)]
        return self.random.choice(self.customers)

    def _story(self, customer: Customer, created: datetime) -> Story:
        random = self.random
        topic = random.choices(topics(), [topic.weight for topic in topics()])[0]
        scenario = random.choice(topic.scenarios)
        gaps = gap_values(random)
        ticket = Ticket(
            subject=_filled(random.choice(scenario.subjects), gaps),
            body=_filled(self._letter(topic, scenario, customer), gaps),
            status=self._status(self.until - created),
            priority=random.choices(PRIORITIES, PRIORITY_WEIGHTS)[0],
            customer=customer,
            paid=Decimal(gaps["amount"]) if _is_about_a_payment(scenario) else None,
            created=created,
        )
        agent = random.choice(self.agents)
        waiting = ticket.status == Ticket.Status.OPEN and random.random() < 0.5
        ticket.assignee = None if waiting else agent
        words = self._words(topic, scenario)
        comments = [_comment(ticket, part, words[part], agent) for part in self._parts(ticket)]
        for comment, moment in zip(comments, self._times(created, len(comments)), strict=True):
            comment.body = _filled(comment.body, gaps)
            comment.created = moment
        ticket.updated = comments[-1].created if comments else created
        return Story(ticket=ticket, comments=comments)

    def _letter(self, topic: Topic, scenario: Scenario, customer: Customer) -> str:
        details = self.random.sample(topic.details, k=self.random.randint(1, 2))
        paragraphs = [
            self.random.choice(GREETINGS),
            scenario.problem,
            " ".join(details),
            f"{self.random.choice(CLOSINGS)}\n{customer.name}",
        ]
        return "\n\n".join(paragraphs)

    def _status(self, age: timedelta) -> Ticket.Status:
        weights = next(weights for limit, weights in STATUS_BY_AGE if age <= limit)
        return self.random.choices(STATUSES, weights)[0]

    def _parts(self, ticket: Ticket) -> list[Part]:
        """Who speaks after the first letter: the last word fits the ticket's status."""
        note: list[Part] = ["note"] if self.random.random() < 0.3 else []
        inquiry: list[Part] = ["question", "answer"] if self.random.random() < 0.4 else []
        thanks: list[Part] = ["thanks"] if self.random.random() < 0.5 else []
        if ticket.assignee is None:
            return note
        match ticket.status:
            case Ticket.Status.OPEN:
                return [*inquiry, *note]
            case Ticket.Status.PENDING:
                return [*note, "question"] if not inquiry else [*inquiry, *note, "reply"]
            case _:
                return [*inquiry, *note, "reply", *thanks, "resolution"]

    def _times(self, created: datetime, number: int) -> Iterator[datetime]:
        """Some hours apart, and closer where there is no more time until the end."""
        moment = created
        for left in range(number, 0, -1):
            pause = timedelta(minutes=self.random.randint(15, 2400))
            moment += min(pause, (self.until - moment) / (left + 1))
            yield moment

    def _words(self, topic: Topic, scenario: Scenario) -> dict[Part, str]:
        inquiry = self.random.choice(topic.inquiries)
        return {
            "note": scenario.note,
            "question": inquiry.question,
            "answer": inquiry.answer,
            "reply": scenario.reply,
            "thanks": self.random.choice(THANKS),
            "resolution": scenario.resolution,
        }


def _comment(ticket: Ticket, part: Part, words: str, agent: User) -> Comment:
    if part in ("answer", "thanks"):
        return Comment(ticket=ticket, customer=ticket.customer, body=words)
    if part == "note":
        return Comment(ticket=ticket, user=agent, body=words, internal=True)
    greeting = f"Hello {ticket.customer.name.split()[0]},"
    return Comment(ticket=ticket, user=agent, body=f"{greeting}\n\n{words}\n\nHarbour support")


def _is_about_a_payment(scenario: Scenario) -> bool:
    return "{order}" in scenario.problem or "{amount}" in scenario.problem


def _filled(text: str, gaps: dict[str, str]) -> str:
    # A gap may begin the sentence: "{product} broken on arrival".
    filled = text.format_map(gaps)
    return filled[:1].upper() + filled[1:]
