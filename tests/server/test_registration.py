"""What cannot be offered is refused at registration, with the cure in the message."""

from __future__ import annotations

import decimal
import enum
import functools
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Literal

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from pydantic import AliasChoices, BaseModel, Field

from django_mcp import Context, MCPServer, RegistrationError

if TYPE_CHECKING:
    from decimal import Decimal as Money


class Arbitrary:
    pass


class Color(enum.Enum):
    RED = "red"


class Unfinished(BaseModel):
    other: Missing  # noqa: F821


def positional_only(amount: int, /) -> None: ...


def many(*amounts: int) -> None: ...


def named(**amounts: int) -> None: ...


def unannotated(amount) -> None: ...


def unannotated_with_default(amount=5) -> None: ...


def arbitrary(thing: Arbitrary) -> None: ...


def nested_arbitrary(things: list[dict[str, Arbitrary]]) -> None: ...


def django_model(user: User) -> None: ...


def function(callback: Callable[[], int]) -> None: ...


def lazy(amounts: Iterable[int]) -> None: ...


def literal_of_members(color: Literal[Color.RED]) -> None: ...


def unimported(price: Money) -> None: ...


def unimported_return() -> Money: ...


def unknown_attribute(price: decimal.Money) -> None: ...


def unfinished(thing: Unfinished) -> None: ...


def misspelt(amount) -> None: ...


misspelt.__annotations__["amount"] = "list of numbers"


def number_as_type(amount: 5) -> None: ...


def bad_pattern(code: Annotated[str, Field(pattern="(")]) -> None: ...


def aliased(amount: Annotated[int, Field(alias="n")]) -> None: ...


def aliased_by_default(amount: int = Field(5, alias="n")) -> None: ...


def aliased_for_validation(amount: Annotated[int, Field(validation_alias="n")]) -> None: ...


def aliased_in_several_ways(
    amount: Annotated[int, Field(validation_alias=AliasChoices("amount", "n"))],
) -> None: ...


def positional_context(ctx: Context, /) -> None: ...


def many_contexts(*ctx: Context) -> None: ...


def two_contexts(first: Context, second: Context) -> None: ...


async def asynchronous_generator() -> AsyncIterator[int]:
    yield 1


def returns_arbitrary() -> Arbitrary: ...


def returns_model() -> User: ...


def returns_function() -> Callable[[], int]: ...


def returns_bytes() -> bytes: ...


def returns_unfinished() -> Unfinished: ...


class Shop:
    def find(self, query: str) -> None: ...


async def later() -> None: ...


REFUSED = {
    positional_only: "positional_only: 'amount' is positional-only.*Remove the `/`",
    many: r"many: \*amounts has no JSON Schema. Name every parameter",
    named: r"named: \*amounts has no JSON Schema",
    unannotated: "annotate the parameter 'amount', for example `amount: str`",
    unannotated_with_default: "annotate the parameter 'amount'",
    arbitrary: "arbitrary: its parameters cannot be expressed.*Arbitrary.*Use types that pydantic",
    nested_arbitrary: "its parameters cannot be expressed.*Arbitrary",
    django_model: "its parameters cannot be expressed.*User",
    function: "its parameters cannot be expressed.*Callable",
    lazy: "its parameters cannot be expressed.*use list instead",
    literal_of_members: "Literal takes members of str or int Enums alone",
    unimported: "names 'Money'.*Import it outside `if TYPE_CHECKING:`",
    unimported_return: "names 'Money'",
    unknown_attribute: "cannot be resolved.*Money",
    unfinished: "its parameters cannot be expressed.*'Missing' is not defined",
    misspelt: "misspelt: an annotation cannot be resolved",
    number_as_type: "number_as_type: ",
    bad_pattern: "its parameters cannot be expressed.*unclosed group",
    aliased: "rename the parameter 'amount' instead of giving it the alias 'n'",
    aliased_by_default: "rename the parameter 'amount' instead",
    aliased_for_validation: "rename the parameter 'amount' instead",
    aliased_in_several_ways: "rename the parameter 'amount' instead",
    positional_context: "'ctx' is positional-only",
    many_contexts: r"\*ctx has no JSON Schema",
    two_contexts: "two_contexts takes two contexts",
    asynchronous_generator: "is an asynchronous generator. Collect what it yields",
    returns_arbitrary: "its return type has no JSON Schema.*Arbitrary.*annotate `-> Any`",
    returns_model: "its return type has no JSON Schema.*User",
    returns_function: "its return type has no JSON Schema",
    returns_bytes: "bytes have no JSON form; wrap them",
    returns_unfinished: "its return type has no JSON Schema",
    Shop.find: "is a method. Register it bound to an object",
}


@pytest.mark.parametrize("refused", REFUSED, ids=lambda each: each.__qualname__)
def test_a_function_that_cannot_be_a_tool_is_refused_with_the_cure(refused):
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match=f"(?s){REFUSED[refused]}") as caught:
        server.tool(refused)
    assert refused.__qualname__ in str(caught.value)
    assert "arbitrary_types_allowed" not in str(caught.value)
    assert server.tools == []


@pytest.mark.parametrize(
    "refused",
    [positional_only, many, unannotated, arbitrary, unimported, aliased, asynchronous_generator],
    ids=lambda each: each.__name__,
)
def test_the_same_goes_for_prompts_resources_and_listings(refused):
    server = MCPServer("test")
    with pytest.raises(RegistrationError):
        server.prompt(refused)
    with pytest.raises(RegistrationError):
        server.resource("x://{amount}")(refused)
    with pytest.raises(RegistrationError):
        server.resource("x://y", list=refused)(lambda: "")
    assert server.prompts == []
    assert server.resources == []


@pytest.mark.parametrize("refused", [5, "find", None, User, Shop, dict], ids=repr)
def test_what_is_no_function_is_refused(refused):
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match="is not a function"):
        server.tool(name="it")(refused)
    with pytest.raises(RegistrationError, match="is not a function"):
        server.completion("prompt", "argument")(refused)


@pytest.mark.parametrize("refused", [print, async_to_sync(later), functools.partial(print)])
def test_a_callable_without_a_usable_signature_is_refused(refused):
    with pytest.raises(RegistrationError):
        MCPServer("test").tool(name="it")(refused)
