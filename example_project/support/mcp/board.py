"""The ticket board: a page that clients show in the conversation, and the tools that it calls."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from django_mcp import Context, mcp
from example_project.support import desk
from example_project.support.forms import ReplyForm
from example_project.support.mcp.lookup import find_ticket
from example_project.support.mcp.queries import TicketId
from example_project.support.mcp.schemas import TicketSummary
from example_project.support.models import Ticket

BOARD = "ui://desk/board"
SHOWN = 30
"""Tickets on the board: what is older waits until there is room."""

# The same page for everybody: whose tickets it shows is a matter of the tools.
mcp.app(
    BOARD,
    template="support/board.html",
    title="Ticket board",
    context={"columns": [Ticket.Status.OPEN, Ticket.Status.PENDING, Ticket.Status.SOLVED]},
    permission="support.view_ticket",
    prefers_border=True,
)


class Board(BaseModel):
    """The newest tickets that are not closed."""

    tickets: list[TicketSummary]


@mcp.tool(
    title="Show the ticket board", app=BOARD, read_only=True, permission="support.view_ticket"
)
def show_board(ctx: Context) -> Board:
    """Show your user a board of the tickets that are not closed, which they can work on by hand.

    What they do there you are not told. Call it for people, and search_tickets for yourself.
    """
    return _board(ctx)


@mcp.tool(
    title="Move a ticket on the board",
    app=BOARD,
    visibility=["app"],
    destructive=False,
    idempotent=True,
    permission="support.change_ticket",
)
def move_on_board(ctx: Context, ticket_id: TicketId, status: Ticket.Status) -> Board:
    """Move a ticket to another column, and return the board as it is then."""
    desk.set_status(find_ticket(ctx.user, ticket_id), status=status)
    return _board(ctx)


def reply_on_board(form: ReplyForm, ctx: Context, ticket_id: TicketId) -> Board:
    """Reply to a ticket, and return the board as it is then."""
    desk.reply(form.ticket, author=desk.speaker(ctx.user), **form.cleaned_data)
    return _board(ctx)


def _about_ticket(ctx: Context, ticket_id: int) -> dict[str, Any]:
    return {"ticket": find_ticket(ctx.user, ticket_id)}


mcp.form(
    ReplyForm,
    reply_on_board,
    form_kwargs=_about_ticket,
    title="Reply on the board",
    app=BOARD,
    visibility=["app"],
    destructive=False,
    permission="support.add_comment",
)


def _board(ctx: Context) -> Board:
    tickets = Ticket.objects.visible_to(ctx.user).exclude(status=Ticket.Status.CLOSED)
    shown = tickets.with_people()[:SHOWN]
    return Board(tickets=[TicketSummary.model_validate(ticket) for ticket in shown])
