"""This project's client and this project's server: both eras, two workers, and what breaks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp_types import CreateMessageResultWithTools, ElicitResult, PromptReference

from django_mcp.client import Client, Limits, OutcomeUnknown, RemoteError
from tests.support.balancer import Balancer, Cut, balancing
from tests.support.servers import RunningServer

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("client-library")]

SCRIPT: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "clients" / "conversation.json").read_text(encoding="utf-8")
)
LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
URLS = ["2025-11-25", MODERN]
"""Revisions in which a user can be sent to a page, and a model be given tools."""


@pytest.fixture(params=[*LEGACY, MODERN])
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def reader(library: list[RunningServer], revision: str, url: str = "", **options: Any) -> Client:
    """A client that answers as the conversation's script has it."""
    return Client(
        url or library[0].url,
        revision=revision,
        timeout=30,
        **{
            "on_elicit": lambda form: ElicitResult.model_validate(SCRIPT["answers"][form.message]),
            "on_elicit_url": lambda page: True,
            "on_sample": sample,
            "sampling_tools": True,
            "roots": lambda: [root["uri"] for root in SCRIPT["roots"]],
            **options,
        },
    )


def sample(asked: Any) -> CreateMessageResultWithTools:
    (last,) = asked.messages[-1].content_as_list
    if last.type == "tool_result":
        (last,) = last.content
    return CreateMessageResultWithTools.model_validate(SCRIPT["samples"][last.text])


async def say(client: Client, name: str, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    return str(result.content[0].text)  # type: ignore[union-attr]


async def test_a_server_is_found_out(library: list[RunningServer]) -> None:
    async with Client(library[0].url) as client:
        assert client.revision == MODERN
        assert client.server_info is not None
        assert client.server_info.name == "library"


async def test_everything_is_listed_and_read(library: list[RunningServer], revision: str) -> None:
    async with reader(library, revision) as client:
        assert "bind" in {tool.name for tool in await client.list_tools()}
        assert [each.uri_template for each in await client.list_resource_templates()] == [
            "book://{slug}"
        ]
        assert [each.name for each in await client.list_resources()] == ["catalogue"]
        assert (await client.read_resource("book://emma")).contents[0].text == "emma"  # type: ignore[union-attr]
        assert [prompt.name for prompt in await client.list_prompts()] == ["regret", "review"]
        prompt = await client.get_prompt("review", {"title": "Emma"})
        assert prompt.messages[0].content.text == "Review Emma."  # type: ignore[union-attr]
        await client.ping()
        with pytest.raises(RemoteError):
            await client.read_resource("nothing://here")
        with pytest.raises(RemoteError):
            await client.complete(PromptReference(name="nobody"), "title", "E")


async def test_progress_is_reported(library: list[RunningServer], revision: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []
    async with reader(library, revision) as client:
        await client.call_tool(
            "bind", {"title": "Emma", "sheets": 3}, on_progress=lambda *each: heard.append(each)
        )
    assert heard == [(1, 3, "sheet 1"), (2, 3, "sheet 2"), (3, 3, "sheet 3")]


async def test_log_messages_arrive_from_a_level_on(
    library: list[RunningServer], revision: str
) -> None:
    heard: list[str] = []
    async with reader(library, revision, on_log=lambda each: heard.append(each.level)) as client:
        await client.set_log_level("warning")
        await say(client, "gossip")
    assert heard == ["warning", "error"]


@pytest.mark.parametrize("revision", ["2025-06-18", *URLS])
async def test_the_user_is_asked(library: list[RunningServer], revision: str) -> None:
    async with reader(library, revision) as client:
        assert await say(client, "borrow", title="Emma") == "Emma for 14 days, renew: True"
        assert await say(client, "join") == "Ada joins south"
        assert await say(client, "order") == "3 in cloth"
        assert await say(client, "dictate") == "wrote a letter"
        if revision in URLS:
            assert (await say(client, "pay")).startswith("paid")


async def test_the_model_and_the_roots_are_asked(
    library: list[RunningServer], revision: str
) -> None:
    async with reader(library, revision) as client:
        assert await say(client, "praise", title="Emma") == "parrot: Emma!"
        roots = str(await client.call_tool("list_roots"))
        assert all(root["uri"] in roots for root in SCRIPT["roots"])
        if revision in URLS:
            assert await say(client, "research") == "There are three."


async def test_calls_run_side_by_side(library: list[RunningServer], revision: str) -> None:
    async with reader(library, revision) as client:
        calls = [say(client, "count", to=number) for number in range(1, 21)]
        assert await asyncio.gather(*calls) == [f"counted to {n}" for n in range(1, 21)]


async def test_changes_are_heard(library: list[RunningServer], revision: str) -> None:
    async with reader(library, revision) as client:
        listening = client.listen(tools=True, prompts=True, uris=["book://emma"])
        async with listening as changes:
            await say(client, "relabel", slug="sanditon")
            await say(client, "relabel", slug="emma")
            change = await changes.next(10)
            assert (change.kind, change.uri) == ("resource", "book://emma")
            for kind in ("tools", "prompts"):
                await say(client, "rearrange", what=kind)
                assert (await changes.next(10)).kind == kind


async def test_a_call_that_nobody_wants_is_called_off(
    library: list[RunningServer], revision: str
) -> None:
    name = f"doze {revision}"
    begun = asyncio.Event()
    async with reader(library, revision) as client:
        doze = asyncio.create_task(
            client.call_tool("doze", {"name": name}, on_progress=lambda *each: begun.set())
        )
        await begun.wait()
        doze.cancel()
        noted = False
        async with asyncio.timeout(10):
            while not noted:
                result = await client.call_tool("noted", {"name": name})
                noted = result.content[0].text == "true"  # type: ignore[union-attr]


def both(library: list[RunningServer], *cuts: Cut) -> Any:
    return balancing([server.port for server in library], list(cuts))


async def test_a_stream_that_is_cut_goes_on_at_the_other_worker(
    library: list[RunningServer],
) -> None:
    heard: list[float] = []
    with both(library, Cut(after=3, having=b"Mansfield Park")) as balancer:
        async with reader(library, "2025-11-25", balancer.url) as client:
            result = await client.call_tool(
                "bind",
                {"title": "Mansfield Park", "sheets": 6},
                on_progress=lambda done, total, message: heard.append(done),
            )
    assert result.content[0].text == "bound Mansfield Park"  # type: ignore[union-attr]
    assert heard == [1, 2, 3, 4, 5, 6]
    assert asked(balancer, "bind") == 1
    assert [each for each in balancer.passed if each.last_event_id]


async def test_a_question_that_the_cut_hid_is_answered(library: list[RunningServer]) -> None:
    with both(library, Cut(after=1, having=b'"dictate"')) as balancer:
        async with reader(library, "2025-11-25", balancer.url) as client:
            assert await say(client, "dictate") == "wrote a letter"


async def test_without_sessions_a_cut_leaves_the_outcome_open(
    library: list[RunningServer],
) -> None:
    with both(library, Cut(after=1, having=b'"bind"')) as balancer:
        async with reader(library, MODERN, balancer.url) as client:
            with pytest.raises(OutcomeUnknown):
                await client.call_tool(
                    "bind", {"title": "Emma", "sheets": 6}, on_progress=lambda *each: None
                )
    assert asked(balancer, "bind") == 1


async def test_listeners_come_back_after_a_cut(library: list[RunningServer]) -> None:
    cuts = [Cut(after=2, method="GET"), Cut(after=2, having=b'"toolsListChanged"')]
    for revision in ("2025-11-25", MODERN):
        with both(library, *cuts) as balancer:
            client = reader(library, revision, balancer.url)
            async with client, client.listen(tools=True) as changes:
                for _ in range(2):
                    await say(client, "rearrange", what="tools")
                    assert (await changes.next(10)).kind == "tools"


async def test_a_session_that_somebody_ends_is_opened_anew(library: list[RunningServer]) -> None:
    """The session is ended, at another worker, under a call that runs."""
    begun = asyncio.Event()
    limits = Limits(drain=5)
    async with reader(library, "2025-11-25", limits=limits) as client:
        tools = await client.list_tools()
        doze = asyncio.create_task(
            client.call_tool("doze", {"name": "ended"}, on_progress=lambda *each: begun.set())
        )
        await begun.wait()
        session = client._open_server.session  # type: ignore[attr-defined]
        async with httpx.AsyncClient() as http:
            headers = (await session()).headers
            assert (await http.delete(library[1].url, headers=headers)).is_success
        again = await asyncio.gather(*(client.list_tools() for _ in range(5)))
        assert all(each == tools for each in again)
        with pytest.raises((RemoteError, OutcomeUnknown)):
            await doze


def asked(balancer: Balancer, name: str) -> int:
    return sum(each.asks == f"tools/call {name}" for each in balancer.passed)
