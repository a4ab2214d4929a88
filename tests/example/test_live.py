"""The official Python client at the running demo, in both eras."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated
from mcp_types import (
    CallToolResult,
    CreateMessageResult,
    ElicitResult,
    ResourceUpdatedNotification,
    TextContent,
    TextResourceContents,
)

from .demo import SECONDS, Admin, Demo

pytestmark = [
    pytest.mark.processes,
    # What the revisions before 2026-07-28 have, and that one has no more.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


class Visitor:
    """A client of the demo, and what it has been told and asked."""

    def __init__(self, demo: Demo, mode: str) -> None:
        self.demo = demo
        self.mode = mode
        self.heard: asyncio.Queue[str] = asyncio.Queue()
        self.logged: list[str] = []
        self.asked: list[Any] = []

    @asynccontextmanager
    async def connected(self, **callbacks: Any) -> AsyncIterator[Client]:
        async with (
            asyncio.timeout(SECONDS),
            Client(
                self.demo.endpoint,
                mode=self.mode,
                read_timeout_seconds=SECONDS,
                log_level="info",
                logging_callback=self._log,
                message_handler=self._hear,
                **callbacks,
            ) as client,
        ):
            assert client.protocol_version == REVISIONS[self.mode]
            if self.mode == "legacy":
                await client.session.set_logging_level("info")
            yield client

    def answering(self, *answers: ElicitResult) -> Callable[..., Awaitable[ElicitResult]]:
        following = iter(answers)

        async def answer(context: Any, params: Any) -> ElicitResult:
            self.asked.append(params)
            return next(following)

        return answer

    @asynccontextmanager
    async def watching(self, client: Client, uri: str) -> AsyncIterator[None]:
        """Hear of the resource, the one way or the other."""
        if self.mode == "legacy":
            await client.session.subscribe_resource(uri)
            yield
            await client.session.unsubscribe_resource(uri)
            return
        async with client.listen(resource_subscriptions=[uri]) as subscription:
            assert subscription.honored.resource_subscriptions == [uri]

            async def hear() -> None:
                async for event in subscription:
                    assert isinstance(event, ResourceUpdated)
                    self.heard.put_nowait(event.uri)

            hearing = asyncio.create_task(hear())
            yield
            hearing.cancel()

    async def _log(self, params: Any) -> None:
        self.logged.append(params.data)

    async def _hear(self, message: Any) -> None:
        # Those of a subscription of 2026-07-28 come here, too.
        if self.mode == "legacy" and isinstance(message, ResourceUpdatedNotification):
            self.heard.put_nowait(str(message.params.uri))


@pytest.fixture(params=REVISIONS)
def visitor(request: pytest.FixtureRequest, demo: Demo) -> Visitor:
    return Visitor(demo, request.param)


async def search(client: Client, **conditions: Any) -> list[int]:
    answer = await client.call_tool("search_tickets", {"limit": 100, **conditions})
    return [ticket["id"] for ticket in data(answer)["tickets"]]


async def paid_ticket(client: Client) -> dict[str, Any]:
    """A ticket of which nothing has been refunded yet."""
    for key in await search(client, text="refund"):
        ticket = data(await client.call_tool("read_ticket", {"ticket_id": key}))
        if ticket["paid"] and ticket["refundable"] == ticket["paid"]:
            return ticket
    raise AssertionError("All has been refunded.")


def data(answer: CallToolResult) -> dict[str, Any]:
    assert not answer.is_error, answer
    found: dict[str, Any] = answer.structured_content
    return found


def text(answer: CallToolResult) -> str:
    (block,) = answer.content
    assert isinstance(block, TextContent)
    return block.text


def accept(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


def test_closing_many_tickets_reports_its_progress(visitor: Visitor, admin: Admin):
    reported: list[tuple[float, float | None, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total, message))

    async def visit() -> list[int]:
        async with visitor.connected() as client:
            keys = (await search(client, status="solved"))[:60]
            assert len(keys) == 60
            answer = await client.call_tool(
                "close_tickets", {"ticket_ids": keys}, progress_callback=report
            )
            assert data(answer) == {"closed": 60, "left_out": []}
            assert not {*keys} & {*await search(client, status="solved")}
            return keys

    keys = asyncio.run(visit())
    steps = [progress for progress, _, _ in reported]
    assert steps == sorted({*steps})
    assert [reported[0], reported[-1]] == [
        (25, 60, "25 tickets closed"),
        (60, 60, "60 tickets closed"),
    ]
    assert [line.partition(" tickets")[0] for line in visitor.logged] == [
        "25 of 60", "50 of 60", "60 of 60",
    ]  # fmt: skip
    assert "Closed with others." in admin.history(keys[0])


def test_cancelling_leaves_closed_what_is_closed(visitor: Visitor, admin: Admin):
    reported = asyncio.Event()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reported.set()

    async def visit() -> list[int]:
        async with visitor.connected() as client:
            keys = sorted(await search(client, status="solved"))
            assert len(keys) > 50
            arguments = {"ticket_ids": keys}
            calling = asyncio.create_task(
                client.call_tool("close_tickets", arguments, progress_callback=report)
            )
            await reported.wait()
            calling.cancel()
            # How far the call has come by now is a matter of luck; that it can be gone on with,
            # and that nothing is closed twice or lost, is not.
            left = await search(client, status="solved")
            assert not {*keys[:25]} & {*left}
            data(await client.call_tool("close_tickets", arguments))
            assert not {*keys} & {*await search(client, status="solved")}
            return keys

    keys = asyncio.run(visit())
    for key in (keys[0], keys[24], keys[25], keys[-1]):
        assert admin.history(key).count("Closed with others.") == 1


def test_a_refund_is_asked_for_until_it_fits(visitor: Visitor):
    answer = visitor.answering(
        accept(amount=100_000, reason="late"), accept(amount=1.25, reason="late")
    )

    async def visit() -> None:
        async with visitor.connected(elicitation_callback=answer) as client:
            ticket = await paid_ticket(client)
            arguments = {"ticket_id": ticket["id"]}
            answered = await client.call_tool("refund_ticket", arguments)
            assert not answered.is_error, answered
            assert text(answered).startswith(f"Refunded 1.25 EUR to {ticket['customer']}")
            after = data(await client.call_tool("read_ticket", arguments))
            assert float(after["refundable"]) == float(ticket["paid"]) - 1.25
            first, second = visitor.asked
            assert first.message.startswith(f"How much shall {ticket['customer']} get back?")
            problem = f"Amount: Between 0.01 and {ticket['paid']} EUR, please."
            assert second.message == f"{first.message}\n\n{problem}"
            assert set(first.requested_schema["properties"]) == {"amount", "reason"}

    asyncio.run(visit())


def test_two_people_refund_the_same_ticket_at_once(visitor: Visitor):
    """Both have the form open, and both send it off with all that there is."""
    both_asked = asyncio.Barrier(2)

    async def pay(ticket: dict[str, Any]) -> CallToolResult:
        async def answer(context: Any, params: Any) -> ElicitResult:
            await both_asked.wait()
            return accept(amount=float(ticket["paid"]), reason="goodwill")

        async with visitor.connected(elicitation_callback=answer) as client:
            return await client.call_tool("refund_ticket", {"ticket_id": ticket["id"]})

    async def visit() -> None:
        async with visitor.connected() as client:
            ticket = await paid_ticket(client)
            answers = await asyncio.gather(pay(ticket), pay(ticket))
            (paid,) = [answer for answer in answers if not answer.is_error]
            (refused,) = [answer for answer in answers if answer.is_error]
            assert text(paid).startswith(f"Refunded {ticket['paid']} EUR")
            # The one who comes so late that all is gone is not even asked.
            assert "has just changed" in text(refused) or "nothing left" in text(refused)
            after = await client.call_tool("read_ticket", {"ticket_id": ticket["id"]})
            assert float(data(after)["refundable"]) == 0

    asyncio.run(visit())


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_refund_that_nobody_wants_is_none(visitor: Visitor, action: Any):
    async def visit() -> None:
        answer = visitor.answering(ElicitResult(action=action))
        async with visitor.connected(elicitation_callback=answer) as client:
            ticket = await paid_ticket(client)
            arguments = {"ticket_id": ticket["id"]}
            answered = await client.call_tool("refund_ticket", arguments)
            assert not answered.is_error
            assert text(answered).startswith("Nothing was refunded")
            after = data(await client.call_tool("read_ticket", arguments))
            assert after["refundable"] == ticket["paid"]

    asyncio.run(visit())
    assert len(visitor.asked) == 1


def test_a_draft_comes_from_the_clients_model(visitor: Visitor):
    async def write(context: Any, params: Any) -> CreateMessageResult:
        visitor.asked.append(params)
        draft = TextContent(type="text", text="Dear Ada, it is on its way.")
        return CreateMessageResult(role="assistant", content=draft, model="quill")

    async def visit() -> None:
        async with visitor.connected(sampling_callback=write) as client:
            (key,) = await search(client, status="open", limit=1)
            before = data(await client.call_tool("read_ticket", {"ticket_id": key}))
            answer = await client.call_tool("draft_reply", {"ticket_id": key, "tone": "formal"})
            assert data(answer) == {
                "ticket_id": key,
                "draft": "Dear Ada, it is on its way.",
                "written_by": "quill",
                "sent": False,
            }
            (asked,) = visitor.asked
            assert before["body"] in asked.messages[0].content.text
            assert "without contractions" in asked.system_prompt
            assert data(await client.call_tool("read_ticket", {"ticket_id": key})) == before

    asyncio.run(visit())


def test_a_client_without_a_model_is_told_what_to_do(visitor: Visitor):
    async def visit() -> None:
        async with visitor.connected() as client:
            (key,) = await search(client, status="open", limit=1)
            answer = await client.call_tool("draft_reply", {"ticket_id": key})
            assert answer.is_error
            assert "write the reply yourself" in text(answer)

    asyncio.run(visit())


def edit_in_its_form(admin: Admin, key: int) -> None:
    admin.edit_ticket(key, subject="Edited in the admin", priority="4")


def choose_an_action(admin: Admin, key: int) -> None:
    admin.act("take", key)


@pytest.mark.parametrize(
    ("edit", "member", "value"),
    [
        (edit_in_its_form, "subject", "Edited in the admin"),
        (choose_an_action, "assignee", "admin"),
    ],
)
def test_who_watches_a_ticket_hears_of_an_edit_in_the_admin(
    visitor: Visitor, admin: Admin, edit: Callable[[Admin, int], None], member: str, value: str
):
    async def visit() -> None:
        async with visitor.connected() as client:
            # Another one each time: who is told of nothing else must not hear of the last edit.
            keys = await search(client, status="pending")
            key = next(each for each in keys if f"ticket://{each}" not in watched)
            uri = f"ticket://{key}"
            watched.add(uri)
            async with visitor.watching(client, uri):
                await asyncio.to_thread(edit, admin, key)
                assert await visitor.heard.get() == uri
            (contents,) = (await client.read_resource(uri)).contents
            assert isinstance(contents, TextResourceContents)
            assert json.loads(contents.text)[member] == value

    asyncio.run(visit())


watched: set[str] = set()


def test_who_watches_a_ticket_hears_of_another_clients_reply(visitor: Visitor):
    other = Visitor(visitor.demo, "auto")

    async def visit() -> None:
        async with visitor.connected() as client, other.connected() as colleague:
            (key,) = await search(client, status="open", limit=1)
            async with visitor.watching(client, f"ticket://{key}"):
                note = {"ticket_id": key, "body": "It is on my desk.", "internal": True}
                data(await colleague.call_tool("reply_to_ticket", note))
                assert await visitor.heard.get() == f"ticket://{key}"

    asyncio.run(visit())
