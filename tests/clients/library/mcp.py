"""Tools that report, log, ask, change things, go on for ever, and hear that they should not."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from django import forms
from mcp_types import SamplingMessage, TextContent, Tool, ToolResultContent, ToolUseContent
from pydantic import BaseModel, Field

from django_mcp import Ask, Context, Elicit, ToolError, content, mcp
from django_mcp.content import text
from django_mcp.http import views

PAUSE = 0.12
"""Seconds between two values of progress, so that each of them is sent."""
STEP = 0.05
"""Seconds between two looks at something."""

# Under WSGI a comment shows that a client has gone. After five seconds, conversations would mostly
# wait for it.
views.ON_THREAD = replace(views.ON_THREAD, keep_alive_seconds=1.0)  # type: ignore[misc]


class Loan(BaseModel):
    """What a reader fills in."""

    days: int = Field(ge=1, le=28, title="Days")
    renew: bool = False


class CardForm(forms.Form):
    """What a reader fills in who has a card."""

    number = forms.RegexField(r"L\d{3}$", label="Card number")


@mcp.tool
def bind(ctx: Context, title: str, sheets: int) -> str:
    """Bind a book, and report each sheet."""
    for sheet in range(1, sheets + 1):
        ctx.progress(sheet, sheets, f"sheet {sheet}")
        time.sleep(PAUSE)
    return f"bound {title}"


@mcp.tool
async def count(ctx: Context, to: int) -> str:
    """Count as fast as possible, one step back after each two."""
    for number in range(1, to + 1):
        await ctx.aprogress(number)
        await ctx.aprogress(number - 0.5)
    return f"counted to {to}"


@mcp.tool
def gossip(ctx: Context) -> str:
    """Say something on four levels."""
    for level in ("debug", "info", "warning", "error"):
        ctx.log(level, {"heard": level}, logger="desk")
    return "said"


@mcp.tool
def borrow(ctx: Context, title: str) -> str:
    """Lend a book for as long as the reader wants."""
    loan = ctx.elicit(f"For how long do you want {title}?", Loan)
    return f"{title} for {loan.days} days, renew: {loan.renew}"


@mcp.tool
def identify(ctx: Context) -> str:
    """Ask for a card until its number can be one."""
    return f"card {ctx.elicit('Your card, please.', CardForm)['number']}"


@mcp.tool(read_only=True)
def who_asks(ctx: Context) -> str:
    """Say which client asks, and in which revision."""
    return f"{ctx.client_info.get('name')} speaks {ctx.protocol_version}"


@mcp.tool
def renew(
    title: str, weeks: Annotated[int, Field(ge=1, le=8)] = 4, pace: Literal["slow", "fast"] = "slow"
) -> str:
    """Renew a loan, which is not possible if somebody else waits for the book."""
    if title == "Emma":
        raise ToolError("Emma is reserved for somebody else.")
    if title == "Sanditon":
        raise KeyError("a mistake of the library's")
    return f"{title} for {weeks} more weeks, {pace}"


@mcp.tool
async def join(ctx: Context) -> str:
    """Ask two things, one after the other."""
    name = await ctx.aelicit("What is your name?", str)
    branch = await ctx.aelicit(f"Which branch, {name}?", Literal["north", "south"])
    return f"{name} joins {branch}"


@mcp.tool
def order(
    copies: Annotated[int, Ask(lambda: Elicit("How many copies?"))],
    cover: Annotated[Literal["cloth", "paper"], Ask(lambda: Elicit("Which cover?"))],
) -> str:
    """Ask two things at once, where that is possible."""
    return f"{copies} in {cover}"


@mcp.tool
async def sign(ctx: Context, title: str) -> str:
    """Ask who signs a book."""
    return f"{title}: {await ctx.aelicit(f'Who signs {title}?', str)}"


@mcp.tool
def pay(ctx: Context) -> str:
    """Send the reader to a page, and say when they are done there."""
    done = ctx.elicit_url("Please pay your fine.", "https://library.example/fines/7/")
    ctx.elicitation_completed(done)
    return f"paid {done}"


@mcp.tool
def praise(ctx: Context, title: str) -> str:
    """Let the client's model praise a book."""
    answer = ctx.sample(
        f"Praise {title}.", max_tokens=60, system_prompt="Be brief.", temperature=0.5
    )
    assert isinstance(answer.content, TextContent)
    return f"{answer.model}: {answer.content.text}"


@mcp.tool
def research(ctx: Context) -> str:
    """Let the client's model look something up, and tell it what there is."""
    question = "How many copies of Emma are there?"
    tool = Tool(name="look_up", input_schema={"type": "object"})
    first = ctx.sample(question, max_tokens=60, tools=[tool])
    (use,) = first.content_as_list
    assert isinstance(use, ToolUseContent)
    found = ToolResultContent(tool_use_id=use.id, content=[text(f"{use.input['title']}: 3")])
    conversation = [
        content.user(question),
        SamplingMessage(role="assistant", content=use),
        SamplingMessage(role="user", content=found),
    ]
    (answer,) = ctx.sample(conversation, max_tokens=60, tools=[tool]).content_as_list
    assert isinstance(answer, TextContent)
    return answer.text


@mcp.tool
async def list_roots(ctx: Context) -> list[str]:
    """List where the client works."""
    return [f"{root.name}: {root.uri}" for root in await ctx.aroots()]


@mcp.resource("book://{slug}")
def read_book(slug: str) -> str:
    """A book's label."""
    return slug


@mcp.resource("book://catalogue", name="catalogue", mime_type="text/plain")
def catalogue() -> str:
    """All titles, a line each."""
    return "Emma\nPersuasion"


@mcp.prompt
def regret(ctx: Context) -> str:
    """Say something, and fail long after that."""
    ctx.log("error", "We are sorry.")
    time.sleep(10 * STEP)
    raise ToolError("There is no such book.")


@mcp.prompt
def review(title: str) -> str:
    """Ask for a review."""
    return f"Review {title}."


@mcp.tool(invalidates=("book://{slug}",))
def relabel(slug: str) -> str:
    """Change a book's label."""
    return slug


@mcp.tool
def rearrange(what: Literal["tools", "prompts", "resources"]) -> str:
    """Change a list."""
    notify = {
        "tools": mcp.notify_tools_changed,
        "prompts": mcp.notify_prompts_changed,
        "resources": mcp.notify_resources_changed,
    }
    notify[what]()
    return what


@mcp.tool
async def doze(ctx: Context, name: str) -> None:
    """Sleep until somebody calls it off."""
    note(f"{name} began")
    await ctx.aprogress(1)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        note(name)
        raise


@mcp.tool
def watch(ctx: Context, name: str) -> None:
    """Stay awake until somebody calls it off."""
    ctx.progress(1)
    while not ctx.cancelled:
        time.sleep(STEP)
    note(name)


@mcp.tool
def noted(name: str) -> bool:
    """Whether a function has noted that it was called off, at whichever worker."""
    return name in diary().read_text().splitlines()


@mcp.tool
def dictate(ctx: Context) -> str:
    """Ask what to write."""
    return f"wrote {ctx.elicit('What shall I write?', str)}"


@mcp.tool
async def testify(ctx: Context) -> str:
    """Ask what happened."""
    return f"heard {await ctx.aelicit('What happened?', str)}"


@mcp.tool
async def fetch(ctx: Context) -> str:
    """Let the client come back for a book from the stacks."""
    released = ctx.release_stream()
    # Longer than a busy machine needs to begin the stream that is let go of.
    await asyncio.sleep(10 * STEP)
    return f"fetched, released: {released}"


def note(name: str) -> None:
    with diary().open("a") as file:
        file.write(f"{name}\n")


def diary() -> Path:
    """The file that all workers share."""
    path = Path(os.environ["DIARY"])
    path.touch()
    return path
