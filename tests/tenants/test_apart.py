"""What belongs to one tenant is unknown at another, also to users of the same number."""

from __future__ import annotations

import asyncio
import contextvars
import json
from typing import Any

import pytest
from django.test import Client as DjangoClient

from django_mcp.current_partition import current_partition
from django_mcp.models import Session
from django_mcp.partitions import enter_partition, here
from django_mcp.store.in_flight.running_requests import StopReason
from django_mcp.store.ledger import ledger
from tests.support.messages import modern as in_modern_form
from tests.support.messages import tool_call
from tests.support.waiting import in_thread

from . import offers
from .tenancy import NUMBER, leave, legacy, modern, people

BOTH = ("acme", "globex")


def sessions(tenant: str) -> list[str]:
    with enter_partition(tenant):
        return list(Session.objects.order_by("created").values_list("state", flat=True))


@pytest.mark.parametrize("tool", ["facts", "afacts"])
def test_a_function_sees_its_tenants_rows_alone(entrance, on_loop, tool):
    async def main() -> None:
        # In turns: each has what the other has just left, the thread above all.
        for tenant in BOTH * 3:
            for client in (modern(entrance, tenant), await legacy(entrance, tenant).open()):
                found = await client.value(tool)
                assert found["user"] == f"anna at {tenant}"
                assert found["items"] == f"{tenant}'s"
                assert found["users"] == f"anna at {tenant}"
                assert found["where"] == tenant
                assert found["schema"] in (tenant, "None", "")

    on_loop(main())


@pytest.mark.parametrize("tool", ["facts", "afacts"])
def test_many_at_once_see_their_own(streaming, on_loop, tool):
    async def main() -> None:
        clients = {tenant: await legacy(streaming, tenant).open() for tenant in BOTH}
        order = BOTH * 10
        found = await asyncio.gather(*(clients[tenant].value(tool) for tenant in order))
        assert [each["items"] for each in found] == [f"{tenant}'s" for tenant in order]

    on_loop(main())


def test_a_session_is_unknown_at_another_tenant(entrance, on_loop):
    async def main() -> None:
        client = await legacy(entrance, "acme").open()
        assert (await client.value("facts"))["items"] == "acme's"  # it is remembered now
        stranger = legacy(entrance, "globex", Mcp_Session_Id=client.session_id)
        stranger.headers["Mcp-Protocol-Version"] = "2025-11-25"
        async with stranger.call("facts") as answer:
            assert answer.status == 404
            assert (await answer.json())["error"]["code"] == -32001
        async with stranger.request("DELETE") as answer:
            assert answer.status == 404
        assert (await client.value("facts"))["items"] == "acme's"
        assert await in_thread(sessions, "acme") == ["ready"]
        assert await in_thread(sessions, "globex") == []

    on_loop(main())


def test_sessions_of_both_are_asked_for_at_once(streaming, settings, on_loop):
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"SESSION_CACHE_SECONDS": 0}

    async def main() -> None:
        mine = {tenant: await legacy(streaming, tenant).open() for tenant in BOTH}
        strange = {}
        for tenant, other in (BOTH, BOTH[::-1]):
            strange[tenant] = legacy(streaming, tenant, Mcp_Session_Id=mine[other].session_id)
            strange[tenant].headers["Mcp-Protocol-Version"] = "2025-11-25"

        async def status(client: Any) -> int:
            async with client.call("facts") as answer:
                await answer.read()
                return answer.status

        asked = [mine[tenant] for tenant in BOTH * 10] + [strange[tenant] for tenant in BOTH * 10]
        found = await asyncio.gather(*map(status, asked))
        assert found == [200] * 20 + [404] * 20

    on_loop(main())


def test_a_session_with_the_same_row_is_unknown_at_another_tenant(entrance, on_loop):
    """As where a tenant's schema was made as a copy of another's."""

    def copy_row() -> None:
        with enter_partition("acme"):
            row = Session.objects.get()
        with enter_partition("globex"):
            row.save(force_insert=True)

    async def main() -> None:
        client = await legacy(entrance, "acme").open()
        await in_thread(copy_row)
        stranger = legacy(entrance, "globex", Mcp_Session_Id=client.session_id)
        stranger.headers["Mcp-Protocol-Version"] = "2025-11-25"
        async with stranger.call("facts") as answer:
            assert answer.status == 404

    on_loop(main())


def test_an_event_is_unknown_at_another_tenant(streaming, on_loop):
    async def main() -> None:
        client = await legacy(streaming, "acme").open()
        async with client.call("steps", gate="open") as answer:
            first = await answer.event()
            event = first.id
            await answer.message()
        stranger = await legacy(streaming, "globex").open()
        async with stranger.listen(event) as answer:
            assert answer.status == 400
        offers.gates["open"].set()
        async with client.listen(event) as answer:
            assert answer.status == 200
            assert (await answer.messages())[-1]["result"]["content"][0]["text"] == "done"

    on_loop(main())


def test_a_state_is_unknown_at_another_tenant(entrance, on_loop):
    capable = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}

    async def main() -> None:
        client, stranger = modern(entrance, "acme"), modern(entrance, "globex")
        given = {"name": "asks", "arguments": {}, **capable}
        async with client.post("tools/call", **given) as answer:
            asked = (await answer.messages())[-1]["result"]
        (key,) = asked["inputRequests"]
        given["requestState"] = asked["requestState"]
        given["inputResponses"] = {key: {"action": "accept", "content": {"value": 3}}}
        async with stranger.post("tools/call", **given) as answer:
            assert (await answer.messages())[-1]["error"]["code"] == -32602
        async with client.post("tools/call", **given) as answer:
            result = (await answer.messages())[-1]["result"]
            assert result["content"][0]["text"] == "acme 3"

    on_loop(main())


def test_a_cursor_is_unknown_at_another_tenant(entrance, settings, on_loop):
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"PAGE_SIZE": 2}

    async def main() -> None:
        client, stranger = modern(entrance, "acme"), modern(entrance, "globex")
        async with client.post("tools/list") as answer:
            cursor = (await answer.json())["result"]["nextCursor"]
        async with stranger.post("tools/list", cursor=cursor) as answer:
            assert (await answer.json())["error"]["code"] == -32602
        async with client.post("tools/list", cursor=cursor) as answer:
            assert "result" in await answer.json()

    on_loop(main())


@pytest.mark.parametrize("who", [{}, {"X_Anonymous": "1"}])
@pytest.mark.parametrize("rate", ["2/m per process", "2/m"])
def test_limits_are_those_of_a_tenants_caller(entrance, settings, on_loop, rate, who):
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"RATE_LIMIT": rate}

    async def status(client: Any) -> int:
        async with client.call("add_item", name="x") as answer:
            await answer.read()
            return answer.status

    async def main() -> None:
        client, stranger = modern(entrance, "acme", **who), modern(entrance, "globex", **who)
        assert [await status(client) for _ in range(3)] == [200, 200, 429]
        assert await status(stranger) == 200

    on_loop(main())


def test_open_connections_are_those_of_a_tenants_caller(streaming, settings, on_loop):
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"MAX_STREAMS_PER_USER": 1}

    async def main() -> None:
        client, stranger = modern(streaming, "acme"), modern(streaming, "globex")
        wish = {"toolsListChanged": True}
        async with client.listen(**wish) as first:
            assert first.status == 200
            async with client.listen(**wish) as second:
                assert second.status == 429
            async with stranger.listen(**wish) as third:
                assert third.status == 200

    on_loop(main())


def test_sessions_per_user_are_those_of_a_tenant(entrance, settings, on_loop):
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"MAX_SESSIONS_PER_USER": 1}

    async def main() -> None:
        for tenant in BOTH:
            await legacy(entrance, tenant).open()
        for tenant in BOTH:
            assert await in_thread(sessions, tenant) == ["ready"]

    on_loop(main())


def test_a_cancellation_reaches_nobody_at_another_tenant(streaming, on_loop):
    async def main() -> None:
        mine = await legacy(streaming, "acme").open()
        other = await legacy(streaming, "globex").open()
        async with mine.call("await_", id=5, gate="a") as answer:
            assert await other.cancel(5) == 202
            async with other.call("facts") as second:
                assert second.status == 200
            offers.gates["a"].set()
            assert (await answer.messages())[-1]["result"]["structuredContent"]["where"] == "acme"

    on_loop(main())


def test_a_host_of_nobody_has_no_endpoint(entrance, on_loop):
    async def main() -> None:
        async with modern(entrance, "nobody").call("facts") as answer:
            assert answer.status == 404

    on_loop(main())


def test_who_is_no_user_there_is_refused(entrance, on_loop):
    def leave_out() -> None:
        with enter_partition("globex"):
            people().filter(pk=NUMBER).delete()

    async def main() -> None:
        await in_thread(leave_out)
        async with modern(entrance, "globex").call("facts") as answer:
            assert answer.status == 401
        assert (await modern(entrance, "acme").value("facts"))["where"] == "acme"

    on_loop(main())


def test_a_call_that_begins_after_another_was_ended_from_elsewhere_is_its_tenants(
    streaming, on_loop
):
    """As at the end of a process, by a task that belongs to no request."""

    def end_first() -> None:
        assert offers.gates["first reached"].wait(20)
        contextvars.Context().run(ledger().requests.running()[0].stop, StopReason.SHUTTING_DOWN)

    async def main() -> None:
        client = await legacy(streaming, "acme").open("2025-03-26")
        batch = [tool_call("await_", 1, gate="first"), tool_call("afacts", 2)]
        ending = asyncio.ensure_future(in_thread(end_first))
        async with client.request("POST", batch) as answer:
            found = {}
            async for message in answer:
                for each in message if isinstance(message, list) else [message]:
                    found[each["id"]] = each
        await ending
        assert "error" in found[1]
        assert json.loads(found[2]["result"]["content"][0]["text"])["items"] == "acme's"

    on_loop(main())


def test_a_thread_of_the_server_keeps_no_partition():
    """Under WSGI the next request in it may be one for another page of the site."""
    message, headers = in_modern_form("tools/call", name="facts", arguments={})
    given = {f"HTTP_{name.upper().replace('-', '_')}": each for name, each in headers.items()}
    given |= {"HTTP_HOST": "acme.localhost", "HTTP_X_USER": str(NUMBER), "HTTP_ACCEPT": "*/*"}
    response = DjangoClient().post("/mcp", message, content_type="application/json", **given)
    assert response.status_code == 200
    assert current_partition() == ""
    leave()
    assert here() == ""
