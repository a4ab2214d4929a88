"""The scripted user of the test client."""

from __future__ import annotations

import enum
from datetime import date
from typing import Any

import pytest
from django.contrib.auth.models import User
from mcp_types import ElicitResult
from pydantic import BaseModel

from django_mcp import Context, MCPServer
from django_mcp.testing import CANCEL, DECLINE, Asked, MCPClient
from django_mcp.testing.scripted_user import (
    UnexpectedQuestion,
)
from tests.server.questions.support import MODERN, serve

pytestmark = pytest.mark.django_db


class Trip(BaseModel):
    town: str
    day: date


def ask(ctx: Context) -> str:
    """Ask several questions."""
    town = ctx.elicit("Which town?", str, key="town")
    trip = ctx.elicit("Which trip?", Trip)
    ctx.elicit("Sure?")
    return f"{town} {trip.town} {trip.day} {ctx.sample('Say it', max_tokens=5).content.text}"


async def aask(ctx: Context) -> str:
    """Ask several questions."""
    town = await ctx.aelicit("Which town?", str, key="town")
    trip = await ctx.aelicit("Which trip?", Trip)
    await ctx.aelicit("Sure?")
    words = await ctx.asample("Say it", max_tokens=5)
    return f"{town} {trip.town} {trip.day} {words.content.text}"


TRIP = Trip(town="Rome", day=date(2026, 7, 28))


@pytest.mark.parametrize(
    "answers",
    [
        ["Oslo", TRIP, None, "Go"],
        ("Oslo", {"town": "Rome", "day": "2026-07-28"}, True, "Go"),
        iter(["Oslo", {"town": "Rome", "day": date(2026, 7, 28)}, True, "Go"]),
        {"Which trip": TRIP, "town": "Oslo", "Sure?": True, "Say it": "Go"},
        lambda asked: {"town": "Oslo", "elicit-2": TRIP, "sample-1": "Go"}.get(asked.key),
    ],
    ids=["list", "tuple", "iterator", "dict", "function"],
)
def test_answers_may_be_given_in_several_ways(answers: Any):
    client = MCPClient(serve(ask), revision=MODERN, answers=answers)
    client.tool("it").assert_ok().assert_contains("Oslo Rome 2026-07-28 Go")
    assert [asked.message for asked in client.asked] == [
        "Which town?",
        "Which trip?",
        "Sure?",
        "Say it",
    ]
    assert client.asked[0].method == "elicitation/create"
    assert client.asked[1].params["requestedSchema"]["required"] == ["town", "day"]


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (Colour.RED, {"action": "accept", "content": {"value": "red"}}),
        ("a", {"action": "accept", "content": {"value": "a"}}),
        ({"other": 1}, {"action": "accept", "content": {"other": 1}}),
        (DECLINE, {"action": "decline"}),
        (CANCEL, {"action": "cancel"}),
        (ElicitResult(action="accept"), {"action": "accept"}),
    ],
    ids=str,
)
def test_each_kind_of_answer(answer: Any, sent: Any):
    seen: list[Any] = []

    def look(ctx: Context) -> str:
        if ctx.input_responses:
            seen.append(ctx.input_responses["elicit-1"])
            return ""
        return ctx.elicit("Value?", str)

    MCPClient(serve(look), revision=MODERN, answers=[answer]).tool("it")
    assert seen == [sent]


def test_a_question_without_an_answer_fails_the_test():
    for answers in ([], {"Another?": 1}):
        client = MCPClient(serve(ask), revision=MODERN, answers=answers)
        with pytest.raises(UnexpectedQuestion, match=r"No answer to town: .*Which town"):
            client.tool("it")


def test_without_answers_the_questions_are_the_answer():
    client = MCPClient(serve(ask), revision=MODERN, capabilities={"elicitation": {}})
    assert client.tool("it").result["resultType"] == "input_required"
    assert client.asked == []


def test_who_answers_declares_that_it_can_unless_the_test_says_otherwise():
    client = MCPClient(serve(ask), revision=MODERN, answers=["Oslo"])
    assert client.capabilities.keys() == {"elicitation", "sampling", "roots"}
    client = MCPClient(serve(ask), revision=MODERN, answers=["Oslo"], capabilities={})
    client.tool("it").assert_error(-32021)
    assert MCPClient(MCPServer("x"), revision=MODERN).capabilities == {}


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("function", [ask, aask])
def test_the_same_script_answers_in_the_legacy_era(revision: str, function: Any):
    client = MCPClient(serve(function), revision=revision, answers=["Oslo", TRIP, None, "Go"])
    client.tool("it").assert_ok().assert_contains("Oslo Rome 2026-07-28 Go")
    assert [asked.message for asked in client.asked[:2]] == ["Which town?", "Which trip?"]


def test_a_question_without_an_answer_fails_the_test_in_the_legacy_era():
    client = MCPClient(serve(ask), answers=["Oslo"])
    with pytest.raises(UnexpectedQuestion, match=r"No answer to elicitation/create: .*trip"):
        client.tool("it")


def test_another_users_client_goes_on_with_the_script():
    client = MCPClient(serve(ask), revision=MODERN, answers=["Oslo", TRIP, True, "Go"])
    other = client.as_user(User.objects.create_user("anna"))
    other.tool("it").assert_ok()
    assert len(client.asked) == 4


def test_the_message_of_a_question():
    assert Asked("roots/list").message == ""
    assert Asked("elicitation/create", {"message": "a"}).message == "a"
    pages = [{"role": "user", "content": {"type": "text", "text": "a"}}]
    pages += [{"role": "user", "content": {"type": "image"}}, pages[0]]
    assert Asked("sampling/createMessage", {"messages": pages}).message == "a\na"
