"""Prompts: their arguments, which arrive as text, and their messages."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from django.contrib.auth.models import User
from django.db import models
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy, override
from mcp_types import GetPromptResult, Icon, PromptMessage
from pydantic import BaseModel, Field

from django_mcp import Context, MCPServer, ToolError, content
from tests.server.support import MODERN, REVISIONS, client_of


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    NUMBER = 1
    TEXT = "text"


class Status(models.TextChoices):
    OPEN = "open", "Still open"


class Priority(models.IntegerChoices):
    LOW = 1, "Low"


class Line(BaseModel):
    sku: str


def serve(function: Any, **options: Any) -> MCPServer:
    server = MCPServer("test")
    server.prompt(name="it", **options)(function)
    return server


def get(function: Any, revision: str = MODERN, /, **arguments: Any) -> Any:
    return client_of(serve(function), revision).request(
        "prompts/get", name="it", arguments=arguments
    )


def test_arguments_are_described():
    def triage(
        ctx: Context,
        ticket_id: int,
        tone: Annotated[str, Field(description="How it sounds", title="Tone")] = "calm",
        color: Color | None = None,
    ) -> str:
        """Triage a ticket.

        Args:
            ticket_id: Which one.
            color: Of the label.
        """
        return ""

    (described,) = client_of(
        serve(
            triage,
            title="Triage",
            icons=[Icon(src="x:i")],
            meta={"example.com/a": 1},
        )
    ).list_prompts()
    assert described == {
        "name": "it",
        "title": "Triage",
        "description": "Triage a ticket.",
        "arguments": [
            {"name": "ticket_id", "description": "Which one.", "required": True},
            {"name": "tone", "title": "Tone", "description": "How it sounds", "required": False},
            {"name": "color", "description": "Of the label.", "required": False},
        ],
        "icons": [{"src": "x:i"}],
        "_meta": {"example.com/a": 1},
    }


def test_a_prompt_without_arguments_has_none():
    server = serve(lambda: "text")
    assert client_of(server).list_prompts() == [{"name": "it"}]
    for params in ({}, {"arguments": {}}, {"arguments": None}):
        assert client_of(server).request("prompts/get", name="it", **params).text == "text"


COERCIONS: list[tuple[Any, str, Any]] = [
    (str, "5", "5"),
    (str, "", ""),
    (int, "5", 5),
    (float, "1.5", 1.5),
    (bool, "true", True),
    (bool, "no", False),
    (date, "2026-07-28", date(2026, 7, 28)),
    (Decimal, "1.50", Decimal("1.50")),
    (Color, "red", Color.RED),
    (Color | None, "red", Color.RED),
    (Level, "2", Level.HIGH),
    (Mixed, "1", Mixed.NUMBER),
    (Mixed, "text", Mixed.TEXT),
    (Status, "open", Status.OPEN),
    (Priority, "1", Priority.LOW),
    (Literal["a", "b"], "b", "b"),
    (Literal[1, 2], "2", 2),
    (Literal["1", 1], "1", "1"),
    (Literal[True, "auto"], "true", True),
    (int | None, "5", 5),
    (int | str, "5", "5"),
    (list[int], "[1, 2]", [1, 2]),
    (list[str], '["a"]', ["a"]),
    (dict[str, int], '{"a": 1}', {"a": 1}),
    (Line, '{"sku": "a"}', Line(sku="a")),
]


@pytest.mark.parametrize(("annotation", "sent", "received"), COERCIONS, ids=repr)
def test_text_becomes_the_annotated_type(annotation, sent, received):
    got = []

    def take(value):
        got.append(value)
        return ""

    take.__annotations__ = {"value": annotation}
    get(take, value=sent).assert_ok()
    assert got == [received]
    assert type(got[0]) is type(received)


def order(number: int, tone: Literal["calm", "firm"] = "calm") -> str:
    """Talk about an order."""
    return f"{number} {tone}"


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_arguments_that_do_not_fit_are_a_protocol_error(revision):
    get(order, revision).assert_error(-32602, "number: this argument is required")
    get(order, revision, number="x").assert_error(-32602, "number: Input should be a valid integer")
    get(order, revision, number="1", tone="rude").assert_error(-32602, "'calm' or 'firm'")
    get(order, revision, number="1", nothing="x").assert_error(
        -32602, "nothing: unknown argument (this takes number, tone)"
    )
    get(order, revision, number=1).assert_error(-32602, "params.arguments.number")
    assert get(order, revision, number="1").text == "1 calm"


@pytest.mark.parametrize("name", ["nobody", "", "It", "x" * 10_000], ids=lambda name: name[:9])
def test_an_unknown_prompt_is_a_protocol_error(name):
    answer = client_of(serve(order)).prompt(name).assert_error(-32602, "Unknown prompt")
    assert len(answer.error["message"]) < 200


IMAGE = content.image(b"\x89PNG", mime_type="image/png")
TEXT = {"type": "text", "text": "a"}
USER = {"role": "user", "content": TEXT}
ASSISTANT = {"role": "assistant", "content": TEXT}

MESSAGES: dict[str, tuple[Any, list[Any]]] = {
    "text": ("a", [USER]),
    "safe text": (mark_safe("a"), [USER]),
    "a block": (content.text("a"), [USER]),
    "a message": (content.assistant("a"), [ASSISTANT]),
    "an official message": (
        PromptMessage(role="assistant", content=content.text("a")),
        [ASSISTANT],
    ),
    "texts": (["a", "a"], [USER, USER]),
    "a mixture": (["a", content.assistant("a"), content.text("a")], [USER, ASSISTANT, USER]),
    "a tuple": ((content.user("a"), content.assistant("a")), [USER, ASSISTANT]),
    "a date": (date(2026, 7, 28), [{"role": "user", "content": {**TEXT, "text": "2026-07-28"}}]),
    "none at all": ([], []),
    "a picture": (
        IMAGE,
        [
            {
                "role": "user",
                "content": {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
            }
        ],
    ),
}


@pytest.mark.parametrize(("value", "expected"), MESSAGES.values(), ids=MESSAGES)
def test_messages_of_several_kinds(value, expected):
    assert get(lambda: value).assert_ok().result["messages"] == expected


def test_a_generator_of_messages():
    def talk() -> Iterator[Any]:
        yield "a"
        yield content.assistant("a")

    assert get(talk).result["messages"] == [USER, ASSISTANT]


def test_asynchronous_functions_talk_too():
    async def talk(name: str) -> str:
        return f"Hello {name}"

    assert get(talk, name="you").text == "Hello you"


def test_lazy_text_is_in_the_language_of_the_call():
    lazy = gettext_lazy("Yes")
    with override("de"):
        assert get(lambda: lazy).text == "Ja"
        assert get(lambda: ["a", lazy]).text == "a\nJa"


def test_the_description_comes_along():
    assert get(order, number="1").result["description"] == "Talk about an order."
    assert "description" not in get(lambda: "a").result


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_result_may_be_ready_made(revision):
    made = GetPromptResult(
        description="Made", messages=[content.assistant("a")], _meta={"example.com/a": None}
    )
    result = get(lambda: made, revision).assert_ok().result
    assert result["description"] == "Made"
    assert result["messages"] == [ASSISTANT]
    assert result["_meta"]["example.com/a"] is None
    assert result.get("resultType") == ("complete" if revision == MODERN else None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NoneType is no message"),
        (5, "int is no message. Return text, content blocks"),
        ({"role": "user", "content": "a"}, "dict is no message"),
        (["a", {"a": 1}], "dict is no message"),
        (b"a", "bytes have no JSON form"),
        (User(id=1), "a User instance has no JSON form"),
    ],
    ids=["none", "number", "dict", "dict in a list", "bytes", "model"],
)
def test_what_is_no_message_is_refused_with_the_cure(value, text):
    get(lambda: value).assert_error(-32603, text)


def test_errors_of_the_function(caplog):
    def fail(kind: str) -> str:
        if kind == "told":
            raise ToolError("There is no such ticket.")
        raise KeyError("a secret")

    get(fail, kind="told").assert_error(-32602, "There is no such ticket.")
    answer = get(fail, kind="bug").assert_error(-32603, "Internal error")
    assert "secret" not in str(answer.message)
    assert "a secret" in caplog.text
