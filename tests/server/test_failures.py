"""What is told of an exception out of the site's code, and what is logged of it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest
from django import forms
from django.contrib.auth.models import Group, User
from django.core.exceptions import (
    DisallowedHost,
    ObjectDoesNotExist,
    PermissionDenied,
    SuspiciousOperation,
    ValidationError,
)
from django.core.signals import got_request_exception
from django.db import IntegrityError
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.test import override_settings
from django.urls import resolve
from django.utils.functional import lazystr
from django.utils.translation import gettext_lazy, override
from mcp_types import Resource
from pydantic import AfterValidator, BaseModel, Field

from django_mcp import (
    Context,
    MCPServer,
    RegistrationError,
    ResourceNotFound,
    ToolError,
    content,
    endpoint,
)
from django_mcp.protocol.errors import MCPError, Unavailable
from tests.support.exceptions import announced
from tests.support.messages import modern
from tests.support.sites import urlconf

from .support import LEGACY, MODERN, client_of, reading

__all__ = ["announced"]

REFERENCE = r"\(reference ([0-9a-f]{8})\)"
ERAS = (LEGACY[-1], MODERN)


def raising(make: Callable[[], Any], *, is_async: bool = False) -> Callable[..., Any]:
    """Return a function that raises what ``make`` raises or returns."""

    def fail() -> str:
        raise make()

    async def afail() -> str:
        raise make()

    return afail if is_async else fail


def call(
    make: Callable[[], Any], revision: str = MODERN, *, is_async: bool = False, **options: Any
) -> Any:
    server = MCPServer("test", **options)
    server.tool(name="it")(raising(make, is_async=is_async))
    return client_of(server, revision).tool("it")


def prompted(make: Callable[[], Any]) -> Any:
    server = MCPServer("test")
    server.prompt(name="it")(raising(make))
    return client_of(server).prompt("it")


def completed(make: Callable[[], Any]) -> Any:
    server = MCPServer("test")
    server.prompt(name="it")(lambda: "")

    def complete(value: str) -> list[str]:
        raise make()

    server.completion("it", "argument")(complete)
    return client_of(server).complete("it", "argument")


class OrderForm(forms.Form):
    amount = forms.IntegerField(min_value=1)
    street = forms.CharField()

    def clean(self) -> None:
        raise ValidationError("Choose either.")


def errors_of_a_form() -> Any:
    return OrderForm({"amount": "x"}).errors


def errors_of_a_formset() -> Any:
    data = {"form-TOTAL_FORMS": 2, "form-INITIAL_FORMS": 0, "form-1-amount": "x"}
    return forms.formset_factory(OrderForm)(data).errors


OF_A_FORM = "amount: Enter a whole number.\nstreet: This field is required.\nChoose either."


class Article(BaseModel):
    sku: str
    prices: list[Annotated[Decimal, Field(gt=0)]]


def article() -> Any:
    return Article.model_validate({"prices": [1, -1]})


TABLE: dict[str, tuple[Callable[[], Any], str, int]] = {
    "ToolError": (lambda: ToolError("Say how many."), "Say how many.", logging.INFO),
    "ToolError, lazy": (lambda: ToolError(lazystr("Later.")), "Later.", logging.INFO),
    "ToolError, a form": (lambda: ToolError(errors_of_a_form()), OF_A_FORM, logging.INFO),
    "ToolError, a formset": (
        lambda: ToolError(errors_of_a_formset()),
        "1.amount: Enter a whole number.\n1.street: This field is required.\n1: Choose either.",
        logging.INFO,
    ),
    "ResourceNotFound": (
        lambda: ResourceNotFound("No note 5."),
        "No note 5.",
        logging.INFO,
    ),
    "ResourceNotFound, bare": (ResourceNotFound, "There is no such resource.", logging.INFO),
    "Http404": (lambda: Http404("No page."), "No page.", logging.INFO),
    "Http404, bare": (Http404, "This does not exist.", logging.INFO),
    "Http404 of the resolver": (
        lambda: resolve("/no/where"),
        "This does not exist.",
        logging.INFO,
    ),
    "ObjectDoesNotExist": (ObjectDoesNotExist, "This does not exist.", logging.INFO),
    "PermissionDenied": (PermissionDenied, "You may not do this.", logging.WARNING),
    "PermissionDenied, why": (
        lambda: PermissionDenied("Not yours."),
        "Not yours.",
        logging.WARNING,
    ),
    "ValidationError": (lambda: ValidationError("Too late."), "Too late.", logging.INFO),
    "ValidationError, of a field": (
        lambda: ValidationError(
            {"__all__": ["Never."], "amount": ValidationError("%(n)s?", params={"n": 5})}
        ),
        "Never.\namount: 5?",
        logging.INFO,
    ),
    "ValidationError, a list": (
        lambda: ValidationError([ValidationError("One."), "Two."]),
        "One.\nTwo.",
        logging.INFO,
    ),
    "ValidationError, a form": (
        lambda: ValidationError(errors_of_a_form()),
        OF_A_FORM,
        logging.INFO,
    ),
    "ValidationError, many": (
        lambda: ValidationError([f"{n}." for n in range(30)]),
        "\n".join(f"{n}." for n in range(20)) + "\nAnd 10 more like these.",
        logging.INFO,
    ),
    "ValidationError, nothing": (lambda: ValidationError([]), "Invalid.", logging.INFO),
    "pydantic": (
        article,
        "sku: Field required\nprices.1: Input should be greater than 0",
        logging.INFO,
    ),
    "IntegrityError": (
        lambda: IntegrityError("UNIQUE constraint failed: a secret"),
        "This conflicts with what is already there.",
        logging.WARNING,
    ),
}


def records(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [each for each in caplog.records if each.name == "django_mcp.server"]


@pytest.mark.django_db
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(("make", "text", "level"), TABLE.values(), ids=TABLE)
def test_what_a_model_can_act_on_is_told(make, text, level, revision, caplog, announced):
    with caplog.at_level(logging.INFO, "django_mcp.server"):
        answer = call(make, revision).assert_failed()
    assert answer.text == text
    (record,) = records(caplog)
    assert record.levelno == level
    assert record.getMessage().startswith("tools/call 'it': ")
    assert bool(record.exc_info) is (text == "This conflicts with what is already there.")
    assert announced == []


@pytest.mark.django_db
def test_what_django_says_of_objects_is_told():
    call(lambda: get_object_or_404(Group, pk=1)).assert_failed("No Group matches the given query.")
    call(lambda: Group.objects.get(pk=1)).assert_failed("Group matching query does not exist.")
    full = Group(name="x" * 200)
    assert call(full.full_clean).text.startswith("name: Ensure this value has at most 150")


def test_what_django_has_translated_is_in_the_language_in_force():
    with override("de"):
        answer = call(lambda: ValidationError(errors_of_a_form()))
        assert "street: Dieses Feld ist zwingend erforderlich." in answer.text
        assert call(lambda: PermissionDenied(gettext_lazy("Yes"))).text == "Ja"


def test_an_exception_of_a_subclass_is_told_as_the_nearest_class_that_is():
    class Closed(PermissionDenied):
        pass

    class Missing(Closed, Http404):
        pass

    assert call(Closed).text == "You may not do this."
    assert call(Missing).text == "You may not do this."


def test_what_is_suspicious_goes_to_djangos_own_log(caplog, announced):
    assert call(lambda: DisallowedHost("a secret")).assert_failed().text == "Refused."
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("django.security.DisallowedHost", "ERROR")
    assert record.getMessage() == "a secret"
    assert record.request.path == "/mcp"
    assert announced == []


# What nobody has foreseen


@pytest.mark.django_db
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_nobody_has_foreseen_has_a_reference(revision, is_async, caplog, announced):
    server = MCPServer("test")
    server.tool(name="it")(raising(lambda: KeyError("a secret"), is_async=is_async))
    answer = client_of(server, revision).tool("it").assert_failed()
    (reference,) = re.fullmatch(rf"The tool failed\. {REFERENCE}", answer.text).groups()
    (record,) = records(caplog)
    assert record.levelname == "ERROR"
    assert record.reference == reference
    assert record.getMessage() == f"tools/call 'it' failed (reference {reference})"
    assert "a secret" in str(record.exc_info[1])
    ((sender, request, error),) = announced
    assert (sender, request.path) == (None, "/mcp")
    assert error is record.exc_info[1]


def test_each_has_a_reference_of_its_own():
    assert call(KeyError).text != call(KeyError).text


def test_in_debug_the_exception_is_told_as_well():
    with override_settings(DEBUG=True):
        text = call(lambda: KeyError("a secret")).text
        error = prompted(lambda: KeyError("a secret")).error
    assert re.fullmatch(rf"The tool failed\. {REFERENCE}\nKeyError: 'a secret'", text)
    assert error["message"].endswith(")\nKeyError: 'a secret'")


@pytest.mark.django_db
@pytest.mark.parametrize("is_async", [False, True])
def test_djangos_own_client_raises_it_in_a_test(client, settings, is_async):
    server = MCPServer("test")
    server.tool(name="it")(raising(lambda: KeyError("planted"), is_async=is_async))
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    message, headers = modern("tools/call", 1, name="it", arguments={})
    with pytest.raises(KeyError, match="planted"):
        client.post("/mcp", message, content_type="application/json", headers=headers)


def test_a_receiver_that_fails_harms_nothing(caplog):
    def broken(**_: Any) -> None:
        raise LookupError("a secret")

    got_request_exception.connect(broken)
    try:
        call(KeyError).assert_failed("The tool failed.")
    finally:
        got_request_exception.disconnect(broken)
    assert "LookupError: a secret" in caplog.text


def test_an_exception_whose_text_fails_is_a_failure(caplog):
    class Odd(ToolError):
        def __str__(self) -> str:
            raise LookupError("a secret")

    call(Odd).assert_failed("The tool failed.")
    assert "LookupError: a secret" in caplog.text


def find(name: str) -> str:
    raise Http404(f"No {name}.")


def test_a_validator_of_an_argument_may_say_what_is_missing():
    server = MCPServer("test")

    @server.tool(name="it")
    def it(name: Annotated[str, AfterValidator(find)]) -> str:
        """Never called."""
        return name

    assert client_of(server).tool("it", name="a").assert_failed().text == "No a."


def test_an_error_of_the_protocol_stays_one(announced):
    call(lambda: MCPError(7001, "ours")).assert_error(7001, "ours")
    assert call(lambda: Unavailable("later")).assert_error(-32603, "later").http["Retry-After"]
    assert announced == []


def test_errors_of_a_group_are_told_as_one_or_are_a_failure(announced):
    async def fail() -> str:
        async def raise_it(error: Exception) -> None:
            raise error

        async with asyncio.TaskGroup() as group:
            for error in errors:
                group.create_task(raise_it(error))
        return ""

    server = MCPServer("test")
    server.tool(name="it")(fail)
    errors: list[Exception] = [PermissionDenied()]
    assert client_of(server).tool("it").text == "You may not do this."
    errors = [PermissionDenied(), KeyError()]
    client_of(server).tool("it").assert_failed("The tool failed.")
    assert len(announced) == 1


def test_a_task_that_the_function_awaits_in_vain_is_a_failure(announced):
    call(asyncio.CancelledError, is_async=True).assert_failed("The tool failed.")
    assert len(announced) == 1


# Resources, prompts and completions


@pytest.mark.django_db
@pytest.mark.parametrize("error", [Http404, ObjectDoesNotExist, ResourceNotFound])
def test_what_is_missing_is_invalid_as_what_is_unknown(error, announced):
    missing = lambda: error("No note 5.")  # noqa: E731
    prompted(missing).assert_error(-32602, "No note 5.")
    completed(missing).assert_error(-32602, "No note 5.")
    answer = reading("x://y", raising(missing)).assert_error(-32602, "Resource not found: x://y")
    assert answer.error["data"] == {"uri": "x://y"}
    server = MCPServer("test")
    server.resource("x://y")(raising(missing))
    client_of(server, LEGACY[-1]).read("x://y").assert_error(-32002, "Resource not found")
    assert announced == []


@pytest.mark.parametrize("error", [PermissionDenied, SuspiciousOperation])
def test_what_is_refused_is_as_good_as_hidden(error, announced):
    refused = lambda: error("a secret")  # noqa: E731
    assert prompted(refused).error["message"] == "Unknown prompt: it"
    assert completed(refused).error["message"] == "Nothing to complete: it"
    reading("x://y", raising(refused)).assert_error(-32602, "Resource not found: x://y")
    assert announced == []


def test_a_listing_that_is_refused_is_left_out():
    def refuse() -> Iterator[Resource]:
        raise PermissionDenied

    def show(x: str) -> str:
        return x

    server = MCPServer("test")
    server.resource("a://{x}", list=refuse)(show)
    server.resource("b://{x}", list=lambda: [Resource(uri="b://1", name="b")])(show)
    assert [each["uri"] for each in client_of(server).list_resources()] == ["b://1"]


OTHERS: dict[str, Callable[[], Any]] = {
    "a bug": lambda: KeyError("a secret"),
    "invalid": lambda: ValidationError("a secret"),
    "conflicting": lambda: IntegrityError("a secret"),
    "pydantic": article,
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_elsewhere_the_rest_is_an_internal_error_with_a_reference(make, caplog, announced):
    for fails in (prompted, completed, lambda make: reading("x://y", raising(make))):
        caplog.clear()
        answer = fails(make).assert_error(-32603, "Internal error")
        (reference,) = re.search(REFERENCE, answer.error["message"]).groups()
        (record,) = records(caplog)
        assert (record.levelname, record.reference) == ("ERROR", reference)
        assert "secret" not in str(answer.message)
    assert len(announced) == 3


def test_a_failure_before_the_function_has_a_reference_too(caplog, announced):
    def broken(user: Any) -> bool:
        raise KeyError("a secret")

    server = MCPServer("test")
    server.tool(name="it", permission=broken)(lambda: "")
    answer = client_of(server).tool("it").assert_error(-32603, "Internal error")
    (reference,) = re.search(REFERENCE, answer.error["message"]).groups()
    assert [each.reference for each in records(caplog)] == [reference]
    assert len(announced) == 1


def test_a_failure_of_auth_has_a_reference_too(caplog, announced):
    def broken(request: Any) -> Any:
        raise KeyError("a secret")

    client = client_of(MCPServer("test"))
    client._auth = broken
    answer = client.request("tools/list").assert_error(-32603, "Internal error")
    (reference,) = re.search(REFERENCE, answer.error["message"]).groups()
    (record,) = (each for each in caplog.records if each.name == "django_mcp.request")
    assert record.reference == reference
    assert len(announced) == 1


@pytest.mark.parametrize("value", ["\ud83d", content.text("\ud83d")], ids=["text", "block"])
def test_an_answer_that_cannot_be_encoded_has_a_reference_too(value, caplog, announced):
    server = MCPServer("test")
    server.tool(name="it")(lambda: value)
    server.prompt(name="it")(lambda: value)
    client = client_of(server)
    text = client.tool("it").assert_failed("The tool failed. (reference ").text
    message = client.prompt("it").assert_error(-32603, "Internal error").error["message"]
    logged = [each.reference for each in caplog.records if hasattr(each, "reference")]
    assert logged == [re.search(REFERENCE, each)[1] for each in (text, message)]
    assert len(announced) == 2


# Handlers of the site's own


class OutOfStock(Exception):
    def __init__(self, left: int) -> None:
        super().__init__(f"a secret: {left}")
        self.left = left


class SoldOut(OutOfStock):
    pass


def served(*, is_async: bool = False, error: Exception | None = None) -> MCPServer:
    server = MCPServer("test")
    server.tool(name="it")(raising(lambda: error or SoldOut(3), is_async=is_async))
    return server


@pytest.mark.django_db
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_handler_makes_text_of_an_exception(revision, is_async, caplog, announced):
    server = served(is_async=is_async)

    @server.exception_handler(OutOfStock)
    def explain(error: OutOfStock, ctx: Context) -> str:
        return f"{error.left} left for {ctx.user or 'you'}; {User.objects.count()} wait."

    with caplog.at_level(logging.INFO, "django_mcp.server"):
        answer = client_of(server, revision).tool("it").assert_failed()
    assert answer.text == "3 left for AnonymousUser; 0 wait."
    assert [each.levelname for each in records(caplog)] == ["INFO"]
    assert announced == []


def test_handlers_may_be_given_with_the_server():
    server = MCPServer("test", exception_handlers={OutOfStock: lambda error: f"{error.left}"})
    server.tool(name="it")(raising(lambda: SoldOut(3)))
    assert client_of(server).tool("it").assert_failed().text == "3"
    assert call(lambda: KeyError("k"), exception_handlers={LookupError: str}).text == "'k'"


def test_a_handler_makes_content_of_an_exception():
    server = served()
    blocks = [content.text("Out of stock."), content.image(b"x", mime_type="image/png")]
    server.exception_handler(OutOfStock)(lambda error: blocks)
    server.prompt(name="it")(raising(lambda: OutOfStock(3)))
    answer = client_of(server).tool("it").assert_failed()
    assert [each["type"] for each in answer.result["content"]] == ["text", "image"]
    client_of(server).prompt("it").assert_error(-32602, "Out of stock.")


@pytest.mark.parametrize("raises", [False, True])
def test_a_handler_makes_a_tool_error_of_an_exception(raises):
    def explain(error: OutOfStock) -> ToolError:
        told = ToolError({"amount": ["Only 3 are left."]})
        if raises:
            raise told
        return told

    server = served()
    server.exception_handler(OutOfStock)(explain)
    assert client_of(server).tool("it").assert_failed().text == "amount: Only 3 are left."


def test_the_handler_of_the_nearest_class_goes_first():
    server = served()
    server.exception_handler(Exception)(lambda error: "any")
    server.exception_handler(OutOfStock, LookupError)(lambda error: "stock")
    server.tool(name="other")(raising(lambda: ValueError()))
    server.tool(name="missing")(raising(Http404))
    client = client_of(server)
    assert client.tool("it").text == "stock"
    assert client.tool("other").text == "any"
    assert client.tool("missing").text == "This does not exist."


def test_a_handler_may_take_the_place_of_the_default():
    server = served(error=Http404())
    server.exception_handler(Http404)(lambda error: "Look elsewhere.")
    server.resource("x://y")(raising(Http404))
    client = client_of(server)
    assert client.tool("it").assert_failed().text == "Look elsewhere."
    client.read("x://y").assert_error(-32602, "Look elsewhere.")


def test_a_handler_may_leave_an_exception_to_others(announced):
    server = served()
    server.exception_handler(SoldOut)(lambda error: None)
    client_of(server).tool("it").assert_failed("The tool failed.")
    assert len(announced) == 1
    server.exception_handler(OutOfStock)(lambda error: "stock")
    assert client_of(server).tool("it").text == "stock"


def test_a_handler_that_fails_is_a_failure(caplog, announced):
    def broken(error: OutOfStock) -> str:
        raise LookupError("a secret")

    server = served()
    server.exception_handler(OutOfStock)(broken)
    answer = client_of(server).tool("it").assert_failed("The tool failed.")
    assert "secret" not in answer.text
    (record,) = records(caplog)
    assert isinstance(record.exc_info[1], LookupError)
    assert isinstance(record.exc_info[1].__context__, SoldOut)
    ((_, _, error),) = announced
    assert error is record.exc_info[1]


def test_what_a_handler_makes_must_be_content(caplog):
    server = served()
    server.exception_handler(OutOfStock)(lambda error: User(id=1))
    client_of(server).tool("it").assert_failed("a User instance has no JSON form")


async def later(error: Exception) -> str:
    return ""


class Told(ToolError):
    pass


@pytest.mark.parametrize(
    ("kind", "function", "message"),
    [
        (OutOfStock, later, "later is no plain function"),
        (OutOfStock, lambda: "", "It takes the exception and, if it wants one, a Context"),
        (OutOfStock, lambda error, more: "", "It takes the exception and"),
        (str, str, "<class 'str'> is no class of exceptions"),
        (KeyboardInterrupt, str, "is no class of exceptions"),
        (later, str, r"@mcp.exception_handler\(OutOfStock\)"),
        (Told, str, "Told is a ToolError: its text reaches the client as it stands"),
    ],
    ids=["async", "takes nothing", "takes more", "str", "no Exception", "bare", "ToolError"],
)
def test_what_cannot_handle_exceptions_is_refused(kind, function, message):
    with pytest.raises(RegistrationError, match=message):
        MCPServer("test").exception_handler(kind)(function)


def test_a_handler_is_for_some_class():
    with pytest.raises(RegistrationError, match="None is no class of exceptions"):
        MCPServer("test").exception_handler()


def test_a_class_has_one_handler():
    server = served()
    server.exception_handler(OutOfStock)(str)
    with pytest.raises(RegistrationError, match="already has a handler for OutOfStock"):
        server.exception_handler(OutOfStock)(str)
