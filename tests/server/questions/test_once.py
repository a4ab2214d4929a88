"""Tools with ``once=True``: what was answered is acted upon at most once."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.core.asgi import get_asgi_application
from django.db import OperationalError

from django_mcp import Ask, Context, Elicit, MCPServer, RegistrationError, ToolError, endpoint
from django_mcp.asgi import mount
from django_mcp.models import RedeemedState
from django_mcp.running.worker_threads import pools
from django_mcp.store.access import redeemed_states
from django_mcp.testing.scripted_user import CAPABILITIES
from tests.store.aging import let_pass, prune
from tests.support import asgi, messages, sites

from .support import accepted, again, call, modern, requests_of

USED = "has been used"
YES = {"sure": accepted(value=True)}

done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done():
    done.clear()


def refund(ctx: Context, fail: bool = False) -> str:
    """Refund something, with no way back."""
    Group.objects.create(name=uuid4().hex)
    if not ctx.elicit("Sure?", bool, key="sure"):
        raise ToolError("Not sure")
    done.append("refunded")
    if fail:
        raise ToolError("The bank has hung up")
    return "refunded"


async def arefund(ctx: Context) -> str:
    """Do the same on the loop."""
    await ctx.aelicit("Sure?", bool, key="sure")
    done.append("refunded")
    return "refunded"


def ask_sure() -> Elicit:
    return Elicit("Sure?")


def declared(sure: Annotated[bool, Ask(ask_sure)]) -> str:
    """Ask in the signature."""
    done.append("refunded")
    return "refunded"


KINDS = pytest.mark.parametrize("function", [refund, arefund, declared])


@pytest.mark.django_db
@KINDS
def test_an_answer_is_good_for_one_call(function, caplog):
    client = modern(function, once=True)
    asked = client.tool("it")
    again(client, asked, YES).assert_ok().assert_contains("refunded")
    for _ in range(2):
        again(client, asked, YES).assert_failed(USED)
    assert done == ["refunded"]
    assert "requestState refused" in caplog.text
    # Whoever is asked once more may say yes once more.
    again(client, client.tool("it"), YES).assert_ok()


@pytest.mark.django_db
@pytest.mark.parametrize("atomic", [True, False])
def test_a_call_that_failed_was_made(atomic):
    """What it has done elsewhere is not undone with what it has written here."""
    client = modern(refund, once=True, atomic=atomic)
    asked = client.tool("it", fail=True)
    again(client, asked, YES, fail=True).assert_failed("hung up")
    again(client, asked, YES, fail=True).assert_failed(USED)
    assert done == ["refunded"]


@pytest.mark.django_db
@pytest.mark.parametrize("atomic", [True, False])
def test_each_round_counts(atomic):
    """Or the first would lead to any number of second ones."""

    def twice(ctx: Context) -> str:
        first, second = ctx.elicit("First?", bool), ctx.elicit("Second?", bool)
        done.append("refunded")
        return f"{first} {second}"

    client = modern(twice, once=True, atomic=atomic)
    first = client.tool("it")
    second = again(client, first, {"elicit-1": accepted(value=True)})
    again(client, first, {"elicit-1": accepted(value=True)}).assert_failed(USED)
    again(client, second, {"elicit-2": accepted(value=True)}).assert_ok()
    again(client, second, {"elicit-2": accepted(value=True)}).assert_failed(USED)
    assert done == ["refunded"]
    assert RedeemedState.objects.count() == 2


@pytest.mark.django_db
@KINDS
def test_what_does_not_fit_is_asked_for_again(function):
    client = modern(function, once=True)
    asked = client.tool("it")
    anew = again(client, asked, {"sure": accepted(value="perhaps")})
    again(client, asked, YES).assert_failed(USED)
    again(client, anew, YES).assert_ok()


@pytest.mark.django_db
@KINDS
def test_an_answer_without_state_counts_for_nothing(function):
    """It could be sent any number of times."""
    client = modern(function, once=True)
    assert list(requests_of(call(client, YES))) == ["sure"]
    assert not done
    assert not RedeemedState.objects.exists()


@pytest.mark.django_db
def test_a_state_from_before_it_was_so_is_refused():
    """Sealed while the tool was registered without, or by a worker of an older version."""
    asked = modern(refund).tool("it")
    again(modern(refund, once=True), asked, YES).assert_error(-32602, "not valid for this request")
    assert not done


@pytest.mark.django_db
def test_without_it_a_retry_after_a_lost_answer_is_served_again():
    client = modern(refund)
    asked = client.tool("it")
    for _ in range(2):
        again(client, asked, YES).assert_ok()
    assert not RedeemedState.objects.exists()


def test_who_cannot_ask_has_nothing_to_do_with_it():
    def function(order_id: int) -> None:
        """Ask nobody."""

    with pytest.raises(RegistrationError, match="once="):
        modern(function, once=True)


@pytest.mark.django_db
def test_while_nobody_can_write_it_down_nothing_is_done(monkeypatch):
    def fail(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("planted")

    client = modern(refund, once=True)
    asked = client.tool("it")
    with monkeypatch.context() as patch:
        patch.setattr(RedeemedState, "save", fail)
        assert again(client, asked, YES).http.status_code == 503
    assert not done
    again(client, asked, YES).assert_ok()


@pytest.mark.django_db
def test_a_commit_whose_answer_was_lost_is_found_again(monkeypatch):
    """The row is there when it is written once more: it is this call's own."""
    original, attempts = redeemed_states._redeem, []

    def lose(*args: Any) -> bool:
        attempts.append(original(*args))
        return original(*args)

    monkeypatch.setattr(redeemed_states, "_redeem", lose)
    client = modern(refund, once=True)
    asked = client.tool("it")
    again(client, asked, YES).assert_ok()
    assert attempts == [True]
    again(client, asked, YES).assert_failed(USED)


@pytest.mark.django_db
def test_what_was_redeemed_is_forgotten_when_its_state_has_expired(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STATE_MAX_AGE_SECONDS": 600}
    client = modern(refund, once=True)
    again(client, client.tool("it"), YES).assert_ok()
    let_pass(seconds=600)
    assert prune() == {}
    let_pass(seconds=redeemed_states.CLOCKS_DIFFER_SECONDS + 10)
    assert prune() == {"redeemed states": 1}


server = MCPServer("once", version="1")
server.tool(name="it", once=True)(refund)
server.tool(name="ait", once=True)(arefund)


def message(tool: str, request_id: int, **more: Any) -> tuple[dict[str, Any], dict[str, str]]:
    found, headers = messages.modern("tools/call", request_id, name=tool, arguments={}, **more)
    found["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = CAPABILITIES
    return found, headers


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("tool", ["it", "ait"])
def test_of_many_at_once_one_wins(settings, tool, monkeypatch):
    """At the mount, on threads of their own: all come to the point before the first goes on."""
    settings.ROOT_URLCONF = sites.urlconf(endpoint("mcp", server=server))
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WORKER_THREADS": 6}
    together, original = threading.Barrier(6, timeout=20), redeemed_states._redeem

    def meet(*args: Any) -> bool:
        if not getattr(seen, "here", False):
            seen.here = True
            together.wait()
        return original(*args)

    seen = threading.local()
    monkeypatch.setattr(redeemed_states, "_redeem", meet)

    async def main() -> list[Any]:
        served = mount(get_asgi_application())
        asked = (await asgi.post(served, (first := message(tool, 1))[0], headers=first[1])).json()
        answers = {"requestState": asked["result"]["requestState"], "inputResponses": YES}
        calls = [message(tool, number, **answers) for number in range(2, 8)]
        replies = [asgi.post(served, body, headers=headers) for body, headers in calls]
        return [reply.messages()[-1]["result"] for reply in await asyncio.gather(*replies)]

    results = sites.run(main())
    texts = sorted(result["content"][0]["text"] for result in results)
    assert texts[-1] == "refunded"
    assert all(USED in text for text in texts[:-1])
    assert done == ["refunded"]
    assert RedeemedState.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_who_finds_no_thread_has_used_nothing(settings):
    settings.ROOT_URLCONF = sites.urlconf(endpoint("mcp", server=server))
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WORKER_THREADS": 1, "THREAD_QUEUE": 0}

    async def main() -> Any:
        served = mount(get_asgi_application())
        asked = (await asgi.post(served, (first := message("it", 1))[0], headers=first[1])).json()
        answers = {"requestState": asked["result"]["requestState"], "inputResponses": YES}
        body, headers = message("it", 2, **answers)
        thread = await pools().calls.take()
        refused = await asgi.post(served, body, headers=headers)
        pools().calls.give_back(thread)
        async with asyncio.timeout(20):
            while (served_then := await asgi.post(served, body, headers=headers)).status == 503:
                await asyncio.sleep(0.01)
        return refused.status, served_then.messages()[-1]["result"]["content"][0]["text"]

    assert sites.run(main()) == (503, "refunded")
