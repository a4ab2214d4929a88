"""Real clients log in: by registration and by a document, refresh, ask for more, and are ended.

At the site's own authorization server, as ``oauth-setup`` prints it. Access tokens are good for a
few seconds there, so that each client renews its own several times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.logins.serving import LoginSite, running_site

from .logging_in import LIFETIME, LOGIN_CLIENTS, TWICE, Login, LoginClient

BASE = "orders:read"
MORE = "orders:write"
ALL = "orders:read orders:write stock:write"
REDIRECTS = [
    f"http://{host}{path}"
    for host in ("127.0.0.1", "localhost")
    for path in ("/callback", "/oauth/callback")
]
END_SECONDS = 5.0
"""Within which a call ends whose login is revoked: a second, and what a busy machine adds."""


@pytest.fixture(scope="session")
def login_site() -> Iterator[LoginSite]:
    """The site, served at the mount."""
    with running_site("mount", has_documents=True, LIFETIME=str(LIFETIME)) as site:
        yield site


@pytest.fixture(scope="session")
def document(login_site: LoginSite) -> str:
    """The id of a client that is the URL of its document."""
    assert login_site.documents is not None
    return login_site.documents.show(client_name="The tests' client", redirect_uris=REDIRECTS)


def ways() -> Iterator[object]:
    """Every client, by each of the ways to a client id."""
    for client in LOGIN_CLIENTS:
        for way in ("registration", "document"):
            # Mostly waited for: several at a time, each with the site of its test process.
            marks = [pytest.mark.workers, pytest.mark.xdist_group(f"login-{client}-{way}")]
            marks += [pytest.mark.node] if client.needs_node else []
            yield pytest.param((client, way), id=f"{client}-{way}", marks=marks)


@pytest.fixture(scope="session")
def logged_in(
    login_site: LoginSite, document: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[LoginClient, str], Login]:
    """Give what came of a client's login. Each is made once, however many tests read it."""
    made: dict[tuple[str, str], Login | BaseException] = {}

    def log_in(client: LoginClient, way: str) -> Login:
        key = client.name, way
        if key not in made:
            client_id = document if way == "document" else way
            try:
                made[key] = client.log_in(
                    login_site, client_id, tmp_path_factory.mktemp(f"{client}-{way}")
                )
            except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                log = login_site.server.log.read_text(errors="replace")
                error.add_note(log[-4000:])
                made[key] = error
        login = made[key]
        if isinstance(login, BaseException):
            raise login
        return login

    return log_in


@pytest.fixture(params=ways())
def way(request: pytest.FixtureRequest) -> tuple[LoginClient, str]:
    """A client, and its way to a client id."""
    pair: tuple[LoginClient, str] = request.param
    return pair


@pytest.fixture
def login(way: tuple[LoginClient, str], logged_in: Callable[[LoginClient, str], Login]) -> Login:
    """What came of it."""
    return logged_in(*way)


def test_logs_in_for_this_endpoint_and_what_it_asks_for(
    login: Login, way: tuple[LoginClient, str], login_site: LoginSite, document: str
) -> None:
    first = login.asked[0]
    assert first["resource"] == f"{login_site.origin}/mcp"
    assert first["scope"] == BASE
    assert first["code_challenge_method"] == "S256"
    assert (first["client_id"] == document) == (way[1] == "document")
    assert login.story["who"] == f"anna oauth:{first['client_id']} {BASE}"
    assert login.story["tools"] == ["count", "pay", "wait", "whoami"]


def test_the_person_reads_who_asks_and_for_what(
    login: Login, way: tuple[LoginClient, str], login_site: LoginSite
) -> None:
    page = login.read[0]
    assert f"The shop {login_site.origin}/mcp" in page
    assert "Your orders" in page
    assert "127.0.0.1:" in page or "localhost:" in page
    assert "a program on your computer" in page
    assert ("The application is described at" in page) == (way[1] == "document")


def test_has_the_scope_that_a_tool_wants_once_somebody_agrees(login: Login) -> None:
    assert login.story["pay"] == "Paid"
    assert len(login.asked) == 2
    assert MORE in login.asked[-1]["scope"].split()


def test_renews_its_token_and_asks_nobody(login: Login) -> None:
    assert login.story["refreshed"].startswith("anna oauth:")
    assert login.story["asked_again"] == 0


def test_a_call_ends_when_the_token_is_revoked_in_the_admin(login: Login) -> None:
    assert login.story["revoked"] >= 1
    assert login.story["ended"] != "waited"
    assert login.story["ended_after"] < END_SECONDS


@pytest.mark.workers
@pytest.mark.xdist_group(f"login-{TWICE}-registration")
def test_the_python_sdk_1_12_sends_each_request_twice(
    login_site: LoginSite, tmp_path: Path
) -> None:
    login = TWICE.log_in(login_site, "registration", tmp_path)
    assert login.story["who"].endswith(ALL)
    first, second = map(int, login.story["counted"])
    assert second - first == 2
    # The token of the first was that of the second as well, and expired between them.
    assert login.story["failed"] == [401]
