"""The language of the caller, at each way in: lazy texts and what functions say are in it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.asgi import get_asgi_application
from django.utils import translation
from django.utils.translation import gettext_lazy

from django_mcp import MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import Principal
from tests.support.asgi import post
from tests.support.messages import modern
from tests.support.sites import run, urlconf

pytestmark = pytest.mark.django_db(transaction=True)
DATE = gettext_lazy("Enter a valid date.")
server = MCPServer("languages", version="1", instructions=DATE)
LOCALE = "django.middleware.locale.LocaleMiddleware"
IN_GERMAN = "Bitte ein gültiges Datum eingeben."
IN_ENGLISH = "Enter a valid date."


@server.tool(title=DATE)
def language() -> str:
    """Say in which language this is."""
    return f"{translation.get_language()}: {DATE}"


@server.tool(description=DATE)
async def alanguage() -> str:
    """Say it on the loop."""
    return f"{translation.get_language()}: {DATE}"


@server.prompt(description=DATE)
def remind() -> str:
    """Remind somebody."""
    return str(DATE)


@server.resource("date://format", title=DATE)
def form() -> str:
    """Say what a date is like."""
    return str(DATE)


def auth(request: Any) -> Principal:
    return Principal(AnonymousUser())


@pytest.fixture(params=["mount", "view"])
def application(request, settings) -> Any:
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server, auth=auth))
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, LOCALE]
    return (mount if request.param == "mount" else lambda each: each)(get_asgi_application())


def result(application: Any, method: str, headers: dict[str, str], **params: Any) -> Any:
    """Return the result of a request in the modern era."""
    message, mirrored = modern(method, **params)
    answer = run(post(application, message, headers={**mirrored, **headers}))
    return answer.json()["result"]


GERMAN = [
    pytest.param({"Accept-Language": "de-DE, en;q=0.5"}, id="header"),
    pytest.param({"Accept-Language": "fr", "Cookie": "django_language=de"}, id="cookie"),
]


@pytest.mark.parametrize("tool", ["language", "alanguage"])
@pytest.mark.parametrize("headers", GERMAN)
def test_functions_run_in_the_language_of_the_caller(application, headers, tool):
    called = result(application, "tools/call", headers, name=tool, arguments={})
    assert called["content"][0]["text"] == f"de: {IN_GERMAN}"


def test_lists_are_in_the_language_of_each_caller(application):
    for headers, text in (
        ({}, IN_ENGLISH),
        ({"Accept-Language": "de"}, IN_GERMAN),
        ({"Accept-Language": "en"}, IN_ENGLISH),
    ):
        tools = result(application, "tools/list", headers)
        assert [tools["tools"][0]["description"], tools["tools"][1]["title"]] == [text, text]
        assert tools["cacheScope"] == "private"
        assert result(application, "prompts/list", headers)["prompts"][0]["description"] == text
        assert result(application, "prompts/get", headers, name="remind")["description"] == text
        assert result(application, "resources/list", headers)["resources"][0]["title"] == text
        discovered = result(application, "server/discover", headers)
        assert discovered["instructions"] == text
        assert discovered["cacheScope"] == "private"


def test_without_that_middleware_all_have_the_language_of_the_site(settings, application):
    settings.MIDDLEWARE = [each for each in settings.MIDDLEWARE if each != LOCALE]
    headers = {"Accept-Language": "de"}
    called = result(mount(get_asgi_application()), "tools/call", headers, name="language")
    assert called["content"][0]["text"].startswith("en")


@pytest.mark.parametrize("application", ["mount"], indirect=True)
def test_no_language_is_left_behind(application):
    before = translation.get_language()

    async def main() -> str | None:
        message, mirrored = modern("tools/call", name="language", arguments={})
        await post(application, message, headers={**mirrored, "Accept-Language": "de"})
        return translation.get_language()

    assert run(main()) == before
