"""The official Python SDK 1.x, from its first releases with this transport on."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import steps
from mcp import ClientSession, McpError, types
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl


class Tour(steps.Tour):
    """A client of the revision that was the newest when it came out."""

    session: ClientSession

    async def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        result = await self.session.call_tool(tool, arguments, progress_callback=self.hear_progress)
        return result.content[0].text

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool.inputSchema for tool in (await self.session.list_tools()).tools}

    async def resource(self) -> str:
        (contents,) = (await self.session.read_resource(AnyUrl(steps.CATALOGUE))).contents
        return contents.text

    async def prompt(self) -> str:
        (message,) = (await self.session.get_prompt("review", steps.REVIEW)).messages
        return message.content.text

    async def logs(self) -> list[str]:
        await self.session.set_logging_level("debug")
        return await super().logs()

    async def hear_log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.heard_logs.append(params.level)

    async def failing(self, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self.session.call_tool("renew", arguments)
        return {"is_error": result.isError, "text": result.content[0].text}

    async def cancellation(self) -> bool:
        """Send the notification: these generations do not when a task is cancelled."""
        name = f"doze {uuid.uuid4()}"
        number = self.session._request_id  # the next one; there is no other way to name it
        calling = asyncio.create_task(self.text_of("doze", {"name": name}))
        await asyncio.sleep(0)  # so that it is the next one
        await self.noted(f"{name} began")
        params = types.CancelledNotificationParams(requestId=number)
        cancelled = types.CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(types.ClientNotification(cancelled))
        try:
            await calling
        except McpError:
            return await self.noted(name)
        return False

    async def answer(self, context: Any, params: Any) -> Any:
        self.asked.append(params.message)
        return types.ElicitResult(action="accept", content=steps.LOAN)


@asynccontextmanager
async def connect(url: str, mode: str, wanted: list[str]) -> AsyncIterator[Tour]:
    tour = Tour()
    callbacks: dict[str, Any] = {"logging_callback": tour.hear_log}
    if "question" in wanted:
        callbacks["elicitation_callback"] = tour.answer
    async with (
        streamablehttp_client(url) as (read, write, _),
        ClientSession(read, write, timedelta(seconds=steps.SECONDS), **callbacks) as session,
    ):
        await session.initialize()
        tour.session = session
        yield tour


if __name__ == "__main__":
    steps.run(connect)
