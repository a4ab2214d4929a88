"""Who may stay: what is open ends with the login that it was opened by, and not before."""

from __future__ import annotations

import asyncio
import datetime as dt
from contextlib import asynccontextmanager

import pytest
from django.contrib.auth import get_user_model
from django.core.asgi import get_asgi_application
from django.utils import timezone

from django_mcp.asgi import mount
from django_mcp.auth import Principal
from django_mcp.contrib.oauth.dot.models import AccessToken, Application, RefreshToken
from django_mcp.contrib.oauth.dot.standing import Standing, ended
from tests.logins.visitor import RESOURCE, Visitor
from tests.support.client import Client
from tests.support.sites import run
from tests.support.waiting import in_thread

REVOKED = "Access was revoked while the request ran"


def standing_of() -> Principal:
    """Whoever came in by the newest token."""
    row = AccessToken.objects.order_by("-pk").first()
    family = RefreshToken.objects.filter(access_token=row).values_list("token_family", flat=True)
    return Principal(
        row.user, "oauth:x", credential=Standing(row.pk, family.first(), frozenset({RESOURCE}))
    )


def expire_tokens() -> None:
    AccessToken.objects.update(expires=timezone.now() - dt.timedelta(hours=1))


@pytest.fixture
def login(editor):
    return editor.login()


@pytest.mark.django_db
def test_a_login_stands_while_its_token_is_good(login):
    assert ended([standing_of()]) == []


@pytest.mark.django_db
def test_an_expired_token_with_a_living_refresh_token_is_still_access(login):
    principal = standing_of()
    expire_tokens()
    assert ended([principal]) == []


@pytest.mark.django_db
def test_a_login_stands_across_refreshes(login, editor):
    principal = standing_of()
    fresh = editor.refresh(login["refresh_token"]).json()
    assert not AccessToken.objects.filter(pk=principal.credential.access_token).exists()
    editor.refresh(fresh["refresh_token"])
    expire_tokens()
    assert ended([principal]) == []


ENDS = {
    "the refresh token is revoked": lambda editor, login: RefreshToken.objects.get().revoke(),
    "the access token is deleted": lambda editor, login: AccessToken.objects.all().delete(),
    "both have expired": lambda editor, login: AccessToken.objects.update(
        expires=timezone.now() - dt.timedelta(days=31)
    ),
    "the application is deleted": lambda editor, login: Application.objects.all().delete(),
    "the user is deleted": lambda editor, login: get_user_model().objects.all().delete(),
    "the resource is another": lambda editor, login: (
        AccessToken.objects.update(resource=["https://other.example/"]),
        RefreshToken.objects.update(resource=["https://other.example/"]),
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_login_ends_when(login, editor, end):
    principal = standing_of()
    end(editor, login)
    assert ended([principal]) == [principal]


@pytest.mark.django_db
def test_an_orphaned_refresh_token_does_not_count(login):
    principal = standing_of()
    AccessToken.objects.all().delete()
    assert RefreshToken.objects.get().revoked is None
    assert ended([principal]) == [principal]


@pytest.mark.django_db
def test_one_login_of_a_client_ends_without_the_others(editor):
    editor.login()
    first = standing_of()
    tokens = editor.login()
    second = standing_of()
    editor.machine.post(
        "/o/revoke_token/", {"token": tokens["access_token"], "client_id": editor.client_id}
    )
    assert ended([first, second]) == [second]


@pytest.mark.django_db
def test_an_application_that_is_out_of_use_ends_its_logins(login, monkeypatch):
    principal = standing_of()
    monkeypatch.setattr(Application, "is_usable", lambda self, request: False)
    assert ended([principal]) == [principal]


@pytest.mark.django_db
def test_many_are_asked_after_at_once(login, django_assert_num_queries):
    principals = [standing_of() for _ in range(20)]
    with django_assert_num_queries(1):
        assert ended(principals) == []
    expire_tokens()
    with django_assert_num_queries(2):
        assert ended(principals) == []


# At the mount, while a call runs


@asynccontextmanager
async def waiting(application, token):
    """A call that has shown something, and goes on."""
    client = await Client(application, Authorization=f"Bearer {token}").open()
    async with client.call("wait", id=1) as answer:
        first = await answer.message()
        assert first["method"] == "notifications/message"
        yield answer


async def last_of(answer):
    """The last message, and after how many seconds it came."""
    began = asyncio.get_running_loop().time()
    messages = await answer.messages()
    return messages[-1], asyncio.get_running_loop().time() - began


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "end",
    [
        lambda: AccessToken.objects.all().delete(),
        lambda: RefreshToken.objects.get().revoke(),
        lambda: Application.objects.all().delete(),
        lambda: get_user_model().objects.update(is_active=False),
    ],
    ids=["token deleted", "refresh token revoked", "application deleted", "user deactivated"],
)
def test_what_is_open_ends_within_a_second(editor, end):
    tokens = editor.login()
    application = mount(get_asgi_application())

    async def main():
        async with waiting(application, tokens["access_token"]) as answer:
            await in_thread(end)
            return await last_of(answer)

    last, seconds = run(main())
    assert last.get("error") == {"code": -32600, "message": REVOKED}, last
    assert seconds < 3


@pytest.mark.django_db(transaction=True)
def test_what_is_open_outlives_a_refresh_and_an_expiry(editor):
    tokens = editor.login()
    application = mount(get_asgi_application())

    def refresh():
        fresh = Visitor(None, editor.client_id).refresh(tokens["refresh_token"])
        assert fresh.status_code == 200
        expire_tokens()

    async def main():
        async with waiting(application, tokens["access_token"]) as answer:
            await in_thread(refresh)
            # Looked at three times meanwhile.
            assert await answer.is_silent(1.5)
            await in_thread(lambda: RefreshToken.objects.get(revoked__isnull=True).revoke())
            return await last_of(answer)

    last, seconds = run(main())
    assert last.get("error") == {"code": -32600, "message": REVOKED}, last
    assert seconds < 3
