"""The whole way through a login, and the page on which people agree, as a browser shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.logins.serving import LoginSite
from tests.logins.serving import running_site as serving_logins
from tests.support.caller import Caller

from .conftest import ADMIN
from .editor import Editor
from .test_landing import STICKS_OUT
from .test_own_tokens import LEGIBLE, focus_by_tab
from .test_tokens import READABLE, contrast

if TYPE_CHECKING:
    from selenium.webdriver.remote.webelement import WebElement

    from .chromium import Browser
    from .serving import Site

ENDPOINT = "/login/mcp"
READ = "desk:read"
ALL = "desk:read desk:write"
ALLOW, REFUSE = "button.yes", "button:not(.yes)"


@pytest.fixture
def editor(site: Site, friendly_origin: str) -> Editor:
    """A client that has registered itself, with a page of its own to which people come back."""
    editor = Editor(site.origin, site.at(ENDPOINT), f"{friendly_origin}/back.html")
    editor.register()
    return editor


def page_of(browser: Browser) -> str:
    """Return what the page on which people agree says."""
    browser.wait(lambda: browser.find_all(ALLOW), "nobody is asked to agree")
    return browser.text("main")


def errors_of(browser: Browser) -> list[str]:
    """Return the errors on the console, but for the icon that the site has not."""
    return [each for each in browser.errors() if "/favicon.ico" not in each]


def come_back(browser: Browser, editor: Editor) -> dict[str, str]:
    """Wait until the browser is back at the client; return what it has brought."""
    arrived = f"return location.href.startsWith({editor.callback!r})"
    browser.wait(lambda: browser.run(arrived), "nobody is sent back")
    return editor.answer_in(browser.driver.current_url)


def test_the_whole_way_by_keyboard(
    browser: Browser, site: Site, editor: Editor, caller: Caller
) -> None:
    browser.open(editor.url(ALL))
    assert browser.driver.current_url.startswith(site.at("/login/?next=/o/authorize/"))
    focus_by_tab(browser, "[name=username]")
    browser.press(*ADMIN["username"])
    focus_by_tab(browser, "[name=password]")
    browser.press(*ADMIN["password"], "ENTER")

    page = page_of(browser)
    assert browser.driver.title == "Let Editor act for you?"
    for said in (
        "You are logged in as admin.",
        "The application has chosen its name itself; nobody has checked it.",
        f"Sends you back to\n{editor.callback.split('/')[2]}",
        f"For\nsupport-desk\n{editor.resource}",
        "This leads to a program on your computer.",
        "It will be able to see\nTickets, customers and articles",
        "It will be able to change\nTickets: answer, assign, close and refund them",
    ):
        assert said in page, page
    # The name, and the sentences of the site's own.
    assert browser.find("h1").accessible_name == "Let Editor act for you?"

    focus_by_tab(browser, ALLOW)
    assert browser.find(ALLOW).value_of_css_property("outline-style") == "solid"
    browser.press("TAB")
    assert browser.run("return document.activeElement.innerText") == "Refuse"
    focus_by_tab(browser, ALLOW)
    browser.press("ENTER")
    tokens = editor.exchange(come_back(browser, editor)["code"])
    assert tokens["scope"] == ALL

    desk = Caller(caller.entrance, path=ENDPOINT)
    bearer = desk.with_headers(Authorization=f"Bearer {tokens['access_token']}")
    assert bearer.tool("search_tickets", query="refund").status == 200
    # The policy of the pages has let their style through, and there was nothing inline.
    assert errors_of(browser) == []


def test_who_refuses_is_sent_back_without_a_code(admin: Browser, editor: Editor) -> None:
    admin.open(editor.url(READ))
    page_of(admin)
    focus_by_tab(admin, REFUSE)
    admin.press("SPACE")
    answer = come_back(admin, editor)
    assert answer["error"] == "access_denied"
    assert "code" not in answer
    assert errors_of(admin) == []


def test_the_page_is_shown_again_whatever_was_agreed_before(admin: Browser, editor: Editor) -> None:
    for _ in range(2):
        admin.open(editor.url(READ))
        assert "It will be able to see" in page_of(admin)
        admin.follow(ALLOW)
        assert "code" in come_back(admin, editor)


def test_who_goes_back_can_answer_once_more(admin: Browser, editor: Editor) -> None:
    admin.open(editor.url(READ))
    admin.follow(REFUSE)
    assert come_back(admin, editor)["error"] == "access_denied"
    admin.driver.back()
    page_of(admin)
    admin.follow(ALLOW)
    assert "code" in come_back(admin, editor)


def test_who_was_logged_out_meanwhile_logs_in_and_is_asked_again(
    admin: Browser, editor: Editor
) -> None:
    admin.open(editor.url(READ))
    page_of(admin)
    admin.driver.delete_cookie("sessionid")
    admin.follow(ALLOW)
    admin.fill(**ADMIN)
    admin.follow("[type=submit]")
    page_of(admin)
    admin.follow(ALLOW)
    assert "code" in come_back(admin, editor)


def test_who_has_logged_in_again_meanwhile_is_shown_the_page_again(
    admin: Browser, site: Site, editor: Editor
) -> None:
    admin.open(editor.url(READ))
    page_of(admin)
    # As a login in another tab does.
    admin.take_cookie(site.origin, "csrftoken", "x" * 32)
    admin.follow(ALLOW)
    assert admin.text("h1") == "Please look at it once more"
    admin.resize(width=360)
    assert admin.run("return document.documentElement.scrollWidth") == 360
    focus_by_tab(admin, ".button")
    admin.press("ENTER")
    page_of(admin)
    admin.follow(ALLOW)
    assert "code" in come_back(admin, editor)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_easy_to_read(admin: Browser, editor: Editor, scheme: str) -> None:
    admin.prefer(scheme)
    admin.open(editor.url(ALL))
    page_of(admin)
    paper = background_of(admin, "main")
    is_dark = contrast(paper, "rgb(0, 0, 0, 1)") < LEGIBLE
    assert is_dark is (scheme == "dark")
    assert contrast(colour_of(admin.find("h1")), paper) > READABLE
    for part in ("main p", "dt", "dd", "dd .url", "h2", "li", ".detail", REFUSE):
        assert contrast(colour_of(admin.find(part)), paper) > LEGIBLE, part
    for part in (".warning", ALLOW):
        assert contrast(colour_of(admin.find(part)), background_of(admin, part)) > LEGIBLE, part


def colour_of(element: WebElement) -> str:
    return element.value_of_css_property("color")


def background_of(browser: Browser, selector: str) -> str:
    return browser.find(selector).value_of_css_property("background-color")


@pytest.mark.parametrize("width", [320, 360, 1280])
def test_nothing_sticks_out(admin: Browser, editor: Editor, width: int) -> None:
    editor.register("A-name-without-any-space-in-it-that-goes-on-and-on-" + "x" * 48)
    admin.resize(width=width)
    admin.open(editor.url(ALL))
    page_of(admin)
    assert admin.run("return document.documentElement.scrollWidth") == width
    boxes = admin.find_all("main, main *:not(strong, span)")
    assert boxes
    assert [box.text for box in boxes if admin.run(STICKS_OUT, box)] == []
    # Both answers are where a thumb finds them.
    assert all(each.rect["height"] >= 44 for each in admin.find_all("button"))


@pytest.fixture(scope="module")
def login_site() -> Iterator[LoginSite]:
    """A site that can fetch documents of clients."""
    with serving_logins("mount", has_documents=True) as running:
        yield running


def test_a_client_with_a_document_is_shown_with_its_host(
    browser: Browser, login_site: LoginSite, friendly_origin: str
) -> None:
    assert login_site.documents is not None
    editor = Editor(login_site.origin, login_site.url, f"{friendly_origin}/back.html")
    editor.client_id = login_site.documents.show(
        client_name="Claude", redirect_uris=[editor.callback]
    )
    browser.open(editor.url("orders:read"))
    browser.fill(username="anna", password="secret")
    browser.follow("[type=submit]")
    page = page_of(browser)
    assert "The application is described at 127.0.0.1." in page
    assert "Application\nClaude (127.0.0.1)" in page
    assert "nobody has checked it" not in page
    browser.follow(ALLOW)
    assert editor.exchange(come_back(browser, editor)["code"])["scope"] == "orders:read"
