"""What changes at one tenant is told to those who listen there, and to nobody elsewhere."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from django_mcp.partitions import enter_partition
from django_mcp.store.database import alias
from tests.support.waiting import in_thread

from .offers import desk
from .tenancy import SCHEMAS, leave, legacy, modern

BOTH = ("acme", "globex")
at_the_mount = pytest.mark.parametrize("streaming", ["mount"], indirect=True)


class Listeners:
    """A listener of each era at each tenant."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._open = AsyncExitStack()
        self.heard: dict[tuple[str, str], Any] = {}

    async def __aenter__(self) -> Listeners:
        for tenant in BOTH:
            client = await legacy(self._application, tenant).open()
            async with client.post("resources/subscribe", uri="desk://one") as answer:
                assert "result" in await answer.json()
            answer = await self._open.enter_async_context(client.listen())
            await answer.event()  # an id to come back with
            self.heard[tenant, "legacy"] = answer
            answer = await self._open.enter_async_context(
                modern(self._application, tenant).listen(resourceSubscriptions=["desk://one"])
            )
            await answer.message()
            self.heard[tenant, "modern"] = answer
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._open.aclose()

    async def only(self, *tenants: str) -> None:
        """Check who hears of it: at these tenants everybody, and at others nobody."""
        for tenant in tenants:
            for era in ("legacy", "modern"):
                message = await self.heard[tenant, era].message()
                assert message["method"] == "notifications/resources/updated", (tenant, era)
        for tenant in {*BOTH} - {*tenants}:
            for era in ("legacy", "modern"):
                assert await self.heard[tenant, era].is_silent(0.6), (tenant, era)


@pytest.mark.parametrize(("tool", "tenant"), [("announce", "acme"), ("aannounce", "globex")])
def test_a_function_announces_to_its_tenant(streaming, on_loop, tool, tenant):
    async def main() -> None:
        async with Listeners(streaming) as listeners:
            await modern(streaming, tenant).value(tool)
            await listeners.only(tenant)

    on_loop(main())


@at_the_mount
@pytest.mark.parametrize("tenant", BOTH[1:])
def test_what_is_done_in_a_partition_is_announced_there(streaming, on_loop, tenant):
    def announce() -> None:
        with enter_partition(tenant), transaction.atomic(using=alias()):
            desk.notify_resource_updated("desk://one")

    async def main() -> None:
        async with Listeners(streaming) as listeners:
            await in_thread(announce)
            await listeners.only(tenant)

    on_loop(main())


@at_the_mount
def test_what_is_announced_outside_of_all_is_heard_everywhere(streaming, on_loop):
    async def main() -> None:
        async with Listeners(streaming) as listeners:
            await in_thread(lambda: desk.notify_resource_updated("desk://one"))
            await listeners.only(*BOTH)

    on_loop(main())


@at_the_mount
def test_also_from_the_loop(streaming, on_loop):
    async def main() -> None:
        async with Listeners(streaming) as listeners:
            desk.notify_resource_updated("desk://one")
            await listeners.only(*BOTH)

    on_loop(main())


@pytest.mark.skipif(not SCHEMAS, reason="a command of django-tenants")
@at_the_mount
@pytest.mark.parametrize("tenant", BOTH[:1])
def test_a_command_for_one_tenant_announces_there(streaming, on_loop, tenant):
    def command() -> None:
        try:
            call_command("tenant_command", "announce", schema_name=tenant)
        finally:
            leave()

    async def main() -> None:
        async with Listeners(streaming) as listeners:
            await in_thread(command)
            await listeners.only(tenant)

    on_loop(main())


@at_the_mount
@pytest.mark.skipif(not SCHEMAS, reason="schemas share a connection, and so a transaction")
def test_one_transaction_announces_to_several_tenants(streaming, on_loop):
    def announce() -> None:
        with transaction.atomic():
            for tenant in ("globex", "acme", "globex"):
                with enter_partition(tenant):
                    desk.notify_resource_updated("desk://one")

    async def main() -> None:
        async with Listeners(streaming) as listeners:
            await in_thread(announce)
            await listeners.only(*BOTH)

    on_loop(main())
