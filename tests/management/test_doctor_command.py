"""``manage.py mcp doctor``: what it prints, and when it fails."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.doctor.plants import metadata, to_endpoint
from tests.doctor.site import CLIENT, TOKEN, Site, as_page, served


@pytest.fixture
def site() -> Iterator[Site]:
    with served(Site(guarded=True)) as found:
        yield found


def run(site: Site, *arguments: str) -> str:
    """Return what it prints."""
    out = io.StringIO()
    given = [site.url, "--watch", "0.3", "--client-document", site.origin + CLIENT, *arguments]
    try:
        call_command("mcp", "doctor", *given, stdout=out, no_color=True)
    except CommandError as error:
        error.add_note(out.getvalue())
        raise
    return out.getvalue()


def test_it_prints_what_it_found(site: Site):
    lines = run(site).splitlines()
    assert lines[0] == site.url
    assert "Endpoint" in lines
    assert '  ok      Whoever has no token is asked for one (401): "Send a token".' in lines
    assert "  note    Revisions, sessions, streams and tools were not looked at" in "\n".join(lines)
    assert lines[-1] == "0 broken, 0 warnings."


def test_what_is_broken_has_a_cure_and_makes_it_fail(site: Site):
    metadata(code_challenge_methods_supported=None)(site)
    with pytest.raises(CommandError, match=r"^1 thing is broken\.") as caught:
        run(site)
    printed = caught.value.__notes__[0]
    assert "  BROKEN  The authorization server says nothing of PKCE" in printed
    assert '          Turn PKCE on, and let "code_challenge_methods_supported" be' in printed


def test_silence_leaves_what_is_broken(site: Site):
    assert run(site, "-v", "0").split("\n\n") == [site.url, "0 broken, 0 warnings.\n"]


def test_machines_read_json(site: Site):
    report = json.loads(run(site, "--json"))
    assert report["url"] == site.url
    assert (report["broken"], report["warnings"]) == (0, 0)
    assert {"section", "level", "name", "message", "cure"} == report["findings"][0].keys()
    assert {"good", "note"} == {each["level"] for each in report["findings"]}

    to_endpoint(as_page())(site)
    with pytest.raises(CommandError) as caught:
        run(site, "--json")
    report = json.loads(caught.value.__notes__[0])
    assert report["broken"] == 1
    assert report["findings"][-1]["name"] == "not-mcp"


def test_a_token_comes_from_a_file_or_the_environment(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TOKEN.encode())))
    for source in (
        ("--token-file", str(file)),
        ("--token-env", "SHOP_TOKEN"),
        ("--token-file", "-"),
    ):
        printed = run(site, *source)
        assert "Tools that are listed: 1" in printed
        assert TOKEN not in printed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--token-env", "NO_SUCH_VARIABLE"), "no variable NO_SUCH_VARIABLE"),
        (("--token-file", "/no/such/file"), "No token can be read from /no/such/file"),
        (("--token-file", os.devnull), "it is empty"),
        (("--token-file", "x", "--token-env", "y"), "not both"),
        (("--timeout", "soon"), "give seconds from 0.1 to 600"),
        (("--watch", "601"), "give seconds from 0.1 to 600"),
    ],
)
def test_what_cannot_be_meant_is_refused(site: Site, arguments: tuple[str, ...], says: str):
    with pytest.raises(CommandError, match=says):
        run(site, *arguments)
    assert site.seen == []


def test_a_url_that_cannot_be_meant_is_refused():
    with pytest.raises(CommandError, match="begins with https://"):
        call_command("mcp", "doctor", "shop.example.com/mcp")


WITHOUT_HTTPX = """
import sys
sys.modules["httpx"] = None
import django
django.setup()
from django.core.management import CommandError, call_command
try:
    call_command("mcp", "doctor", "https://shop.example.com/mcp")
except CommandError as error:
    assert "django-mcp-endpoints[client]" in str(error), error
else:
    raise SystemExit("it ran")
"""


def test_without_httpx_it_says_what_to_install():
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_HTTPX], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr


def test_it_needs_no_django():
    program = (
        "import sys\n"
        "for name in ('django', 'channels', 'asgiref'): sys.modules[name] = None\n"
        "import django_mcp.doctor.examination\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
