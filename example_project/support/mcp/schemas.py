"""What the tools return. The field descriptions end up in the output schemas that models read."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasPath, BaseModel, ConfigDict, Field

from example_project.support.models import Ticket

# PostgreSQL stores every character but this one.
PlainText = Annotated[str, AfterValidator(lambda text: text.replace("\x00", ""))]
PriorityName = Literal["low", "normal", "high", "urgent"]


class Row(BaseModel):
    """Made from a model instance, attribute by attribute."""

    model_config = ConfigDict(from_attributes=True)


class TicketSummary(Row):
    """A ticket as lists show it."""

    id: int
    subject: str
    status: Ticket.Status
    priority: PriorityName = Field(validation_alias="priority_name")
    customer: str = Field(
        validation_alias=AliasPath("customer", "name"), description="The customer's name"
    )
    assignee: str | None = Field(
        None,
        validation_alias=AliasPath("assignee", "username"),
        description="The agent's username; null while nobody has the ticket",
    )
    created: datetime
    updated: datetime


class CommentText(Row):
    """Something that was said about a ticket."""

    author: str
    from_customer: bool
    internal: bool = Field(description="A note among agents, which the customer does not see")
    body: str
    created: datetime


class TicketDetail(TicketSummary):
    """A ticket with everything that the caller may read."""

    body: str = Field(description="The customer's first message")
    paid: Decimal | None = Field(description="What the customer paid for it, in EUR, if anything")
    refundable: Decimal = Field(description="What is left of it to refund")
    comments: list[CommentText] = Field(
        validation_alias="visible_comments", description="What was said since, oldest first"
    )


class SearchResult(BaseModel):
    """The newest of the tickets that were found."""

    found: int = Field(description="How many tickets fit, shown or not")
    tickets: list[TicketSummary]


class ClosedTickets(BaseModel):
    """What became of tickets that were to be closed."""

    closed: int = Field(description="How many were closed")
    left_out: list[int] = Field(
        description="Numbers asked for that are closed already, not to be seen, or do not fit"
    )


class Draft(BaseModel):
    """A reply that nobody has sent."""

    ticket_id: int
    draft: str = Field(description="The text, to be shown to your user and changed as they like")
    written_by: str = Field(description="The model that wrote it")
    sent: Literal[False] = Field(default=False, description="Only reply_to_ticket sends anything")


class ArticleMatch(BaseModel):
    """An article that is about the same thing."""

    slug: str
    title: str
    uri: str = Field(description="Where to read it as a resource")
    score: float = Field(description="Likeness: 0 for none, 1 for the same words")
    excerpt: str


class ArticleText(Row):
    """A page of the knowledge base."""

    slug: str
    title: str
    tags: list[str] = Field(validation_alias="tag_list")
    body: str = Field(description="Markdown")
    updated: datetime


class WeekFigures(Row):
    """The tickets that came in during one week, by the status that they have today."""

    monday: date
    by_status: dict[Ticket.Status, int]


class Statistics(BaseModel):
    """The figures of the desk."""

    by_status: dict[Ticket.Status, int] = Field(description="All tickets there are")
    weeks: list[WeekFigures] = Field(description="Oldest first; the last week is the present one")
