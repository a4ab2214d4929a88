"""Templates become pages that are the same for everybody."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.template import Context, Template
from django.test import override_settings
from django.utils import translation

from django_mcp import MCPServer, RegistrationError
from django_mcp.server.mcp_apps import rendering
from django_mcp.server.mcp_apps.rendering import PageError

from .support import BOARD, PLAIN, client_of, found, html_of, server_with

OF_A_REQUEST = {
    "variable": "{{ user }}",
    "member": "{{ request.path }}",
    "condition": "{% if user.is_staff %}{% endif %}",
    "comparison": "{% if perms and 1 %}{% endif %}",
    "operator": "{% if user == 'anna' %}{% endif %}",
    "loop": "{% for each in messages %}{% endfor %}",
    "filter": "{{ request|default:'' }}",
    "tag": "{% csrf_token %}",
    "block": "{% with user as somebody %}{{ somebody.username }}{% endwith %}",
    "session": "{{ session.basket }}",
}


@pytest.mark.parametrize("text", OF_A_REQUEST.values(), ids=OF_A_REQUEST)
def test_a_template_that_asks_for_something_of_a_request_is_an_error(write, text: str):
    write({"board.html": f"<p>{text}</p>"})
    (error,) = found(server_with())
    assert error.id == "django_mcp.E070"
    (named,) = re.findall(r"uses (\w+)\.", error.msg)
    assert named in text or named == "csrf_token"
    assert "return what belongs to a user from the tool" in error.msg


def test_what_is_included_is_looked_at_as_well(write):
    write({"board.html": "{% include 'part.html' %}", "part.html": "{{ user }}"})
    assert "uses user" in found(server_with())[0].msg


@pytest.mark.parametrize("name", rendering.OF_A_REQUEST)
def test_it_cannot_be_given_either(name: str):
    with pytest.raises(RegistrationError, match=f"context= has '{name}'"):
        server_with(context={name: "anna"})


def test_values_of_the_sites_own_are_in_the_template(write):
    write({"board.html": "{% for each in columns %}<h2>{{ each }}</h2>{% endfor %}"})
    assert html_of(server_with(context={"columns": ["Open", "<b>"]})) == (
        "<h2>Open</h2><h2>&lt;b&gt;</h2>"
    )


def test_a_template_that_is_missing_says_where_it_belongs(write):
    write({})
    (error,) = found(server_with("nowhere.html"))
    assert (error.id, "no template 'nowhere.html'" in error.msg) == ("django_mcp.E070", True)
    write({"board.html": "{% include 'part.html' %}"})
    assert "no template 'part.html'" in found(server_with())[0].msg


def test_a_template_with_a_mistake_says_so(write):
    write({"board.html": "{% if %}"})
    (error,) = found(server_with())
    assert "'board.html' cannot be rendered: TemplateSyntaxError" in error.msg


def test_a_page_that_cannot_be_made_is_an_error_of_the_server_to_clients(write, caplog):
    write({"board.html": "{{ user }}"})
    client_of(server_with()).read(BOARD).assert_error(-32603, "Internal error")
    assert "uses user" in caplog.text


def test_a_page_is_rendered_once(write, tmp_path: Path):
    write({"board.html": PLAIN})
    server = server_with()
    assert html_of(server) == PLAIN
    (tmp_path / "board.html").write_text("changed")
    assert html_of(server) == PLAIN


def test_with_debug_a_change_is_seen_at_once(write, tmp_path: Path):
    write({"board.html": PLAIN})
    server = server_with()
    with override_settings(DEBUG=True):
        assert html_of(server) == PLAIN
        (tmp_path / "board.html").write_text("changed")
        assert html_of(server) == "changed"


def test_each_language_has_its_page(write):
    write({"board.html": "{% load i18n %}{% translate 'Yes' %}"})
    (app,) = server_with().apps
    with translation.override("de"):
        assert app.html() == "Ja"
    with translation.override("fr"):
        assert app.html() == "Oui"
    with translation.override("de"):
        assert app.html() == "Ja"


def test_threads_get_the_same_page(write):
    write({"board.html": "{% load mcp_apps %}{% mcp_bridge %}"})
    (app,) = server_with().apps
    pages: list[str] = []
    threads = [threading.Thread(target=lambda: pages.append(app.html())) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(pages) == 8
    assert len(set(pages)) == 1


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, Any]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_bridge_knows_its_page(write):
    write({"board.html": '{% load mcp_apps %}{% mcp_bridge "inline fullscreen" %}'})
    server = MCPServer("test", version='2"</script>')
    server.app(BOARD, template="board.html", name="The 'board' & more")
    ((tag, attributes),) = Elements(html_of(server)).found
    assert tag == "script"
    assert attributes["data-mcp-app"] == (
        '{"name": "The \'board\' & more", "version": "2\\"</script>", '
        '"displayModes": ["inline", "fullscreen"]}'
    )


def test_the_bridge_is_small_and_whole(write):
    write({"board.html": "{% load mcp_apps %}{% mcp_bridge %}"})
    html = html_of(server_with())
    assert len(html) < 6_000
    assert "\n//" not in html
    assert html.endswith("})();</script>")


def test_the_bridge_has_no_place_in_a_page_of_the_site():
    with pytest.raises(PageError, match="no host to talk with"):
        Template("{% load mcp_apps %}{% mcp_bridge %}").render(Context())


def test_a_site_without_apps_imports_nothing_of_them():
    code = (
        "import django; django.setup(); import sys; from django.core.management import "
        "call_command; call_command('check'); "
        "print([each for each in sys.modules if 'server.mcp_apps' in each])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout.splitlines()[-1:], done.returncode) == (["[]"], 0), done.stderr
