"""Apps in a host, whose frames have the policy that the app declares and nothing else."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .app_view import AppView

if TYPE_CHECKING:
    from .chromium import Browser
    from .serving import Site

BOARD = "show_board"
ELSEWHERE = "http://127.0.0.1:9"
CARD = ".board li"


@pytest.fixture
def view(browser: Browser, site: Site, friendly_origin: str, foreign_origin: str) -> AppView:
    """A host that lets apps do less than any."""
    return AppView(browser, site, friendly_origin, foreign_origin)


def test_a_board_shows_the_result(view: AppView, browser: Browser) -> None:
    view.show(BOARD)
    browser.wait(lambda: browser.find_all(CARD))
    (result,) = view.seen()["results"]
    tickets = result["structuredContent"]["tickets"]
    shown = [each.text for each in browser.find_all("li .subject")]
    assert sorted(shown) == sorted(ticket["subject"] for ticket in tickets)
    view.assert_clean()


def opened(view: AppView, browser: Browser, **wishes: object) -> AppView:
    """Show the board, and wait for its tickets."""
    view.show(BOARD, **wishes)
    browser.wait(lambda: browser.find_all(CARD))
    return view


def cards(browser: Browser, status: str) -> list[str]:
    return [each.text for each in browser.find_all(f'[data-status="{status}"] .about')]


def test_a_button_calls_a_tool_that_models_do_not_see_and_the_board_is_new(
    view: AppView, browser: Browser
) -> None:
    opened(view, browser)
    button = browser.find(f"{CARD} button")
    number, status = button.get_attribute("data-key").split(" ")
    before, label = cards(browser, status), button.text
    button.click()
    browser.wait(lambda: len(cards(browser, status)) == len(before) + 1)
    assert any(each.startswith(f"#{number} ") for each in cards(browser, status))
    assert browser.text("#said") == f"Ticket {number} is now under {label}."
    listed = view.in_host("return window.client.tool('move_on_board')._meta.ui.visibility")
    assert listed == ["app"]
    view.assert_clean()


def test_the_form_says_what_is_wrong_at_each_field_and_then_is_sent(
    view: AppView, browser: Browser
) -> None:
    opened(view, browser)
    if not cards(browser, "solved"):
        browser.find('button[data-key$=" solved"]').click()
    button = browser.find('[data-status="solved"] button[data-key$=" reply"]')
    number = button.get_attribute("data-key").split(" ")[0]
    button.click()
    called = len(view.seen()["results"])

    # What the browser finds needs no call.
    browser.find("form [type=submit]").click()
    assert "fill" in browser.text(".errorlist").lower()
    assert browser.run("return document.activeElement.name") == "body"
    assert len(view.seen()["results"]) == called

    # What the form finds is said at both fields, and belongs to them.
    browser.fill(body="Dear [name], it is on its way.")
    browser.find("[name=internal]").click()
    browser.find("form [type=submit]").click()
    browser.wait(lambda: len(browser.find_all(".errorlist")) == 2)
    assert errors_of(browser, "body") == "Fill in [name] before you send it."
    assert errors_of(browser, "internal") == "Nobody reads notes about a solved ticket."
    assert browser.run("return document.activeElement.name") == "body"
    assert browser.find("[name=body]").get_attribute("value") == "Dear [name], it is on its way."

    # What is right is no longer said to be wrong, and in the end it is sent.
    browser.fill(body="It is on its way.")
    browser.find("form [type=submit]").click()
    browser.wait(lambda: len(browser.find_all(".errorlist")) == 1)
    assert browser.find("[name=body]").get_attribute("aria-invalid") is None
    browser.find("[name=internal]").click()
    browser.find("form [type=submit]").click()
    browser.wait(lambda: f"Ticket {number} has been answered." in browser.text("#said"))
    assert browser.find_all(".errorlist") == []
    assert browser.find("[name=body]").get_attribute("value") == ""
    assert f"#{number} " in " ".join(cards(browser, "pending"))
    view.assert_clean()


def errors_of(browser: Browser, name: str) -> str:
    """Return what a screen reader says of a field's errors."""
    field = browser.find(f"[name={name}]")
    assert field.get_attribute("aria-invalid") == "true"
    described = field.get_attribute("aria-describedby").split(" ")
    (errors,) = [each for each in described if each.endswith("_error")]
    return browser.text(f"#{errors}")


def test_the_keyboard_is_enough(view: AppView, browser: Browser) -> None:
    opened(view, browser)
    first = browser.find(f"{CARD} button")
    browser.run("arguments[0].focus()", first)
    key = first.get_attribute("data-key")
    number = key.split(" ")[0]
    browser.press("ENTER")
    browser.wait(lambda: browser.text("#said").startswith(f"Ticket {number} "))
    # The focus goes on with the ticket.
    focused = "return document.activeElement.dataset.key"
    assert browser.run(focused).split(" ")[0] == number
    browser.press("TAB", "TAB")
    assert browser.run(focused) == f"{number} reply"
    browser.press("SPACE")
    browser.press(*"Hello", "TAB", "SPACE", "SPACE", "TAB", "ENTER")
    browser.wait(lambda: f"Ticket {number} has been answered." in browser.text("#said"))
    assert browser.run(focused) == f"{number} reply"
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert browser.run(outline) == "solid"
    view.assert_clean()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_has_the_colours_of_its_host(view: AppView, browser: Browser, theme: str) -> None:
    opened(view, browser, theme=theme)
    other = {"light": "dark", "dark": "light"}
    assert is_dark(browser) is (theme == "dark")
    view.in_host("window.changeContext({ theme: arguments[0] })", other[theme])
    browser.wait(lambda: is_dark(browser) is (theme != "dark"))
    view.assert_clean()


def is_dark(browser: Browser) -> bool:
    """Tell by the brightness of the page and of its text."""
    back, text = (
        browser.run(f"return getComputedStyle(document.body).{name}")
        for name in ("backgroundColor", "color")
    )
    assert contrast(back, text) >= 7
    return luminance(back) < 0.5


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, as WCAG has it."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * each for w, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_its_texts_can_be_read(view: AppView, browser: Browser, theme: str) -> None:
    opened(view, browser, theme=theme)
    browser.find(f'{CARD} button[data-key$=" reply"]').click()
    browser.find("form [type=submit]").click()
    texts = browser.run(COLOURS)
    assert len(texts) > 20
    assert {text for text, front, back in texts if contrast(front, back) < 4.5} == set()


COLOURS = """
const backOf = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const colour = getComputedStyle(each).backgroundColor;
    if (colour !== "rgba(0, 0, 0, 0)") return colour;
  }
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const found = [];
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
  found.push([walker.currentNode.textContent, getComputedStyle(element).color, backOf(element)]);
}
return found;
"""


def test_values_of_the_hosts_own_replace_those_of_the_page(view: AppView, browser: Browser) -> None:
    opened(view, browser, variables={"--color-background-primary": "rgb(1, 2, 3)"})
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(1, 2, 3)"


def test_it_fits_into_a_narrow_frame(view: AppView, browser: Browser) -> None:
    browser.resize(width=360)
    opened(view, browser)
    browser.find(f'{CARD} button[data-key$=" reply"]').click()
    size = browser.run("const r = document.documentElement; return [r.scrollWidth, innerWidth]")
    assert size[0] <= size[1]
    sections = [each.rect for each in browser.find_all(".board section")]
    assert len({each["x"] for each in sections}) == 1, "columns below each other"
    view.assert_clean()


def test_its_host_is_told_how_large_it_is(view: AppView, browser: Browser) -> None:
    opened(view, browser)
    height = "return Math.ceil(document.documentElement.getBoundingClientRect().height)"
    browser.wait(lambda: view.seen()["sizes"][-1]["height"] == browser.run(height))
    before = view.seen()["sizes"]
    browser.find(f'{CARD} button[data-key$=" reply"]').click()
    browser.wait(lambda: view.seen()["sizes"][-1]["height"] > before[-1]["height"])
    assert all(one != other for one, other in itertools.pairwise(view.seen()["sizes"]))


def test_a_link_is_opened_by_the_host(view: AppView, browser: Browser) -> None:
    opened(view, browser)
    browser.run("document.body.innerHTML = '<a href=\"https://example.com/help\"><b>Help</b></a>';")
    browser.find("a b").click()
    browser.wait(lambda: view.seen()["links"] == ["https://example.com/help"])
    view.assert_clean()


def test_what_else_a_page_may_say_is_what_a_host_understands(
    view: AppView, browser: Browser
) -> None:
    opened(view, browser)
    told = browser.run(
        """
        const said = {};
        const done = async () => {
          mcpApp.log("info", { opened: true });
          said.host = mcpApp.host.info.name;
          said.read = (await mcpApp.readResource("ui://desk/board")).contents.length;
          said.message = await mcpApp.sendMessage("Summarize ticket 7.");
          said.context = await mcpApp.updateModelContext({ structuredContent: { ticket: 7 } });
          said.mode = (await mcpApp.requestDisplayMode("fullscreen")).mode;
          try { await mcpApp.callTool("no_such_tool"); } catch (error) { said.error = error.code; }
          const failed = await mcpApp.callTool("move_on_board", { ticket_id: 0, status: "open" });
          said.failed = failed.isError;
          return said;
        };
        return done();
        """
    )
    assert told == {
        "host": "host",
        "read": 1,
        "message": {},
        "context": {},
        "mode": "inline",
        "error": -32602,
        "failed": True,
    }
    (log,) = view.seen()["logs"]
    assert log == {"level": "info", "data": {"opened": True}, "logger": "desk/board"}
    view.assert_clean()


def test_it_answers_its_host(view: AppView, browser: Browser) -> None:
    opened(view, browser)
    assert view.in_host("return window.ask('ping')") == {}
    assert view.in_host("return window.ask('tools/list')")["code"] == -32601
    assert view.in_host("return window.ask('toString')")["code"] == -32601
    browser.run("mcpApp.on('teardown', async ({ reason }) => { window.why = reason; });")
    assert view.in_host("return window.ask('ui/resource-teardown', { reason: 'closed' })") == {}
    assert browser.run("return window.why") == "closed"
    view.assert_clean()


def test_messages_of_others_count_for_nothing(view: AppView, browser: Browser) -> None:
    opened(view, browser)
    browser.run(
        "postMessage({ jsonrpc: '2.0', method: 'ui/notifications/tool-result', params: "
        "{ structuredContent: { tickets: [] } } }, '*');"
    )
    browser.run("return new Promise((done) => setTimeout(done))")
    assert browser.find_all(CARD)


def test_a_page_without_a_host_waits(site: Site, view: AppView, browser: Browser) -> None:
    opened(view, browser)
    html = view.in_host("return window.page.text")
    browser.driver.switch_to.default_content()
    browser.open("about:blank")
    browser.run("document.open(); document.write(arguments[0]); document.close();", html)
    assert browser.text("#waiting") == "Waiting for the tickets…"
    assert browser.errors() == []


def test_what_is_not_declared_is_refused(view: AppView, browser: Browser) -> None:
    view.show("show_planted")
    browser.wait(lambda: browser.text("#result") == "shown")
    refused = browser.run("return window.refused.map(([directive]) => directive)")
    assert sorted(refused) == ["connect-src", "img-src", "script-src-elem", "style-src-elem"]
    assert [each.url for each in browser.exchanges() if ELSEWHERE in each.url and each.status] == []
    assert "Content Security Policy" in " ".join(browser.errors())


def test_what_is_declared_is_asked_for(view: AppView, browser: Browser) -> None:
    view.show("show_declared")
    browser.wait(lambda: browser.text("#result") == "shown")
    assert browser.run("return window.refused") == [["connect-src", f"{ELSEWHERE}/planted.json"]]


def test_fields_of_every_kind_arrive_as_their_form_takes_them(
    view: AppView, browser: Browser, tmp_path: Path
) -> None:
    view.show("show_fields")
    (tmp_path / "note.txt").write_text("in a file")
    browser.find("[name=name]").clear()
    browser.find("[name=count]").send_keys("3")
    browser.find("[name=price]").send_keys("12.50")
    browser.run("document.forms[0].day.value = '2026-03-01'")
    browser.run("document.forms[0].moment.value = '2026-03-01T10:30'")
    browser.find("[name=agreed]").click()
    browser.choose("known", "Yes")
    browser.choose("size", "Large")
    for label in ("Red", "Blue"):
        browser.choose("colours", label)
    browser.find("[name=days][value=tu]").click()
    browser.find("[name=speed][value=fast]").click()
    browser.fill(more='{"a": [1]}')
    browser.find("[name=file]").send_keys(str(tmp_path / "note.txt"))
    browser.find("form [type=submit]").click()
    browser.wait(lambda: browser.text("[role=status]") or browser.text("[role=alert]"))
    said = browser.text("[role=status]")
    for expected in (
        "'name': ''",
        "'count': 3",
        "'price': Decimal('12.50')",
        "'day': datetime.date(2026, 3, 1)",
        "datetime.datetime(2026, 3, 1, 10, 30",
        "'agreed': True",
        "'known': True",
        "'size': 2",
        "'colours': ['r', 'b']",
        "'days': ['tu']",
        "'speed': 'fast'",
        "'more': {'a': [1]}",
        "'file': 'in a file'",
    ):
        assert expected in said
    view.assert_clean()


def test_errors_of_groups_belong_to_the_group(view: AppView, browser: Browser) -> None:
    view.show("show_fields")
    browser.find("form [type=submit]").click()
    browser.wait(lambda: len(browser.find_all(".errorlist")) > 4)
    group = browser.find("fieldset:has([name=speed])")
    described = group.get_attribute("aria-describedby").split(" ")[-1]
    assert browser.text(f"#{described}")
    assert all(
        each.get_attribute("aria-invalid") == "true" for each in browser.find_all("[name=speed]")
    )
    assert browser.run("return document.activeElement.name") == "count"
    view.assert_clean()
