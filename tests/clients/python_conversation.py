"""The official Python client's conversation with the library: what it asked, heard and answered."""

from __future__ import annotations

import asyncio
import json
import uuid
import warnings
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    SubscriptionLost,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import Implementation

from .python_client import plain

SECONDS = 30
SCRIPT: dict[str, Any] = json.loads(
    Path(__file__).with_name("conversation.json").read_text(encoding="utf-8")
)
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
EMMA, SANDITON = "book://emma", "book://sanditon"


async def converse(url: str, mode: str, without: Collection[str] = ()) -> dict[str, Any]:
    """Connect in the SDK's `mode`, say everything but the steps `without`, and close."""
    talk = Talk()
    async with httpx2.AsyncClient(timeout=SECONDS) as http:
        client = Client(
            streamable_http_client(url, http_client=http),
            mode=mode,
            client_info=Implementation(name="reader", version="1.0"),
            read_timeout_seconds=SECONDS,
            elicitation_callback=talk.elicit,
            sampling_callback=talk.sample,
            sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
            list_roots_callback=talk.list_roots,
            logging_callback=talk.log,
            message_handler=talk.hear,
        )
        with warnings.catch_warnings():
            # The SDK warns of what the modern era has deprecated, also where it speaks another.
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            async with client:
                return await talk.hold(client, without)


class Talk:
    """One conversation, and what reaches the client beside results."""

    client: Client

    def __init__(self) -> None:
        self.progress: list[dict[str, Any]] = []
        self.logs: list[Any] = []
        self.asked: list[Any] = []
        self.completed: list[str] = []
        self.changed: list[str] = []
        self.signed = asyncio.Event()

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(plain(params))
        await self.swap(params.message)
        return types.ElicitResult.model_validate(SCRIPT["answers"][params.message])

    async def swap(self, message: str) -> None:
        """Answer the question that was asked last first, and the other when that call has ended."""
        if message == "Who signs Emma?":
            await self.signed.wait()
        elif message == "Who signs Middlemarch?":
            await until(lambda: len(self.asked) == 2)

    async def sample(
        self, context: Any, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools:
        self.asked.append(plain(params))
        (last,) = params.messages[-1].content_as_list
        if isinstance(last, types.ToolResultContent):
            (last,) = last.content
        assert isinstance(last, types.TextContent)
        result = types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
        return result.model_validate(SCRIPT["samples"][last.text])

    async def list_roots(self, context: Any) -> types.ListRootsResult:
        self.asked.append({})
        return types.ListRootsResult.model_validate({"roots": SCRIPT["roots"]})

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logs.append(plain(params))

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        given = {"progress": progress, "total": total, "message": message}
        self.progress.append({key: each for key, each in given.items() if each is not None})

    async def hear(self, message: Any) -> None:
        if isinstance(message, types.ElicitCompleteNotification):
            self.completed.append(message.params.elicitation_id)
        elif not self.modern:
            # In the modern era what changes comes by the subscription as well.
            self.note_change(message, getattr(message, "params", None))

    def note_change(self, news: Any, details: Any) -> None:
        match news:
            case ResourceUpdated() | types.ResourceUpdatedNotification():
                self.changed.append(details.uri)
            case ToolsListChanged() | types.ToolListChangedNotification():
                self.changed.append("tools")
            case PromptsListChanged() | types.PromptListChangedNotification():
                self.changed.append("prompts")
            case ResourcesListChanged() | types.ResourceListChangedNotification():
                self.changed.append("resources")

    @property
    def modern(self) -> bool:
        return self.client.protocol_version >= "2026"

    async def hold(self, client: Client, without: Collection[str]) -> dict[str, Any]:
        """Say everything, but for some steps that a session does not have everywhere."""
        self.client = client
        story: dict[str, Any] = {"connected": client.protocol_version}
        for step, words in SCRIPT["calls"].items():
            if not (self.modern and words.get("resumes")):
                story[step] = await self.call(words["name"], words["arguments"], words.get("level"))
        story["signed"] = await self.let_sign()
        if self.modern:
            story["changes"] = await self.listen()
            story["lost"] = await self.lose_and_listen_again()
            story["cut off"] = await self.be_cut_off()
        elif "changes" not in without:
            story["changes"] = await self.subscribe()
        story["called off"] = [await self.call_off("doze"), await self.call_off("watch")]
        return story

    async def call(
        self, name: str, arguments: dict[str, Any], level: types.LoggingLevel | None
    ) -> dict[str, Any]:
        """Call a tool, and give what was heard besides."""
        meta: Any = None
        if level and self.modern:
            meta = {LOG_LEVEL: level}
        elif level:
            await self.client.set_logging_level(level)
        for heard in (self.progress, self.logs, self.asked, self.completed):
            heard.clear()
        return {
            **await self.result(name, arguments, meta),
            "progress": list(self.progress),
            "logs": list(self.logs),
            "asked": list(self.asked),
            "completed": list(self.completed),
        }

    async def result(
        self, name: str, arguments: dict[str, Any], meta: Any = None
    ) -> dict[str, Any]:
        try:
            result = await self.client.call_tool(
                name, arguments, progress_callback=self.report, meta=meta
            )
        except MCPError as error:
            return {"error": plain(error.error)}
        return {"result": plain(result)}

    async def let_sign(self) -> dict[str, Any]:
        """Call twice at once; see :meth:`swap`."""
        self.asked.clear()
        ended: list[str] = []

        async def sign(title: str) -> None:
            result = await self.result("sign", {"title": title})
            ended.append(result["result"]["content"][0]["text"])
            self.signed.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(sign("Emma"))
            await until(lambda: len(self.asked) == 1)
            group.create_task(sign("Middlemarch"))
        return {"ended": ended, "asked": [asked["message"] for asked in self.asked]}

    async def subscribe(self) -> dict[str, Any]:
        """Hear of changes on the session's own stream, which breaks off after the first."""
        self.changed.clear()
        await self.client.subscribe_resource(EMMA)
        await self.change("relabel", slug="sanditon")
        await self.heard_after(EMMA, "relabel", slug="emma")
        for each in ("tools", "prompts", "resources"):
            await self.heard_after(each, "rearrange", what=each)
        await self.client.unsubscribe_resource(EMMA)
        await self.change("relabel", slug="emma")
        await self.heard_after("tools", "rearrange", what="tools")
        return {"heard": list(self.changed)}

    async def listen(self) -> dict[str, Any]:
        """Hear of the changes that were asked for."""
        async with self.listening(
            tools_list_changed=True, resource_subscriptions=[EMMA]
        ) as honored:
            await self.change("relabel", slug="sanditon")
            await self.heard_after(EMMA, "relabel", slug="emma")
            await self.change("rearrange", what="prompts")
            await self.heard_after("tools", "rearrange", what="tools")
        return {"honored": honored, "heard": list(self.changed)}

    async def lose_and_listen_again(self) -> dict[str, Any]:
        """Lose the stream after the first change, which is said; and listen again."""
        lost = False
        try:
            async with self.listening(resource_subscriptions=[SANDITON]):
                await self.heard_after(SANDITON, "relabel", slug="sanditon")
                await until(lambda: False)
        except* SubscriptionLost:
            lost = True
        async with self.listening(resource_subscriptions=[SANDITON]):
            await self.heard_after(SANDITON, "relabel", slug="sanditon")
        return {"lost": lost, "heard": list(self.changed)}

    @asynccontextmanager
    async def listening(self, **filter: Any) -> AsyncIterator[Any]:
        async with self.client.listen(**filter) as subscription, asyncio.TaskGroup() as group:
            self.changed.clear()
            reading = group.create_task(self.read(subscription))
            yield plain(subscription.honored)
            reading.cancel()

    async def read(self, subscription: AsyncIterator[Any]) -> None:
        async for event in subscription:
            self.note_change(event, event)

    async def be_cut_off(self) -> str:
        """Lose the stream of a call, and give what the client says to that."""
        name = f"cut off {uuid.uuid4()}"
        result = await self.result("doze", {"name": name})
        await self.noted(name)
        return str(result["error"]["message"])

    async def call_off(self, tool: str) -> str:
        """Call off a call when it has begun, and wait until its function has noted that."""
        name = f"{tool} {uuid.uuid4()}"
        with anyio.CancelScope() as scope:

            async def begun(*args: Any) -> None:
                scope.cancel()

            await self.client.call_tool(tool, {"name": name}, progress_callback=begun)
        await self.noted(name)
        return tool

    async def noted(self, name: str) -> None:
        async with asyncio.timeout(SECONDS):
            while not await self.change("noted", name=name):
                await asyncio.sleep(0.05)

    async def change(self, tool: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result
        content = result.structured_content
        return content["result"] if isinstance(content, dict) else content

    async def heard_after(self, change: str, tool: str, **arguments: Any) -> None:
        """Change something, and wait until word of it has come."""
        before = self.changed.count(change)
        await self.change(tool, **arguments)
        await until(lambda: self.changed.count(change) > before)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.01)
