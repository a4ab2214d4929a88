"""The program that the official suite runs as a client: `client.py URL`, the scenario by name."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

# A script has its own directory on the path, not the checkout.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from mcp.client.auth import OAuthFlowError
from mcp_types import CreateMessageResult, TextContent

from django_mcp.client import AuthenticationFailed, Client
from tests.conformance.logins import login

Story = Callable[[Client], Awaitable[None]]


async def list_tools(client: Client) -> None:
    await client.list_tools()


async def add_numbers(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def call_every_tool(client: Client) -> None:
    """With empty arguments, in the order of the list."""
    for tool in await client.list_tools():
        await client.call_tool(tool.name)


async def call_as_told(client: Client) -> None:
    await client.list_tools()
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def call_what_is_valid(client: Client) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, {"region": "north"})


async def use_everything(client: Client) -> None:
    await call_every_tool(client)
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


async def echo_schema(client: Client) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    schema = tools["json_schema_2020_12_tool"].input_schema
    await client.call_tool("json_schema_echo", {"schema": schema})


STORIES: dict[str, Story] = {
    "initialize": list_tools,
    "tools_call": add_numbers,
    "elicitation-sep1034-client-defaults": call_every_tool,
    "sse-retry": call_every_tool,
    "request-metadata": list_tools,
    "sep-2322-client-request-state": call_every_tool,
    "http-standard-headers": use_everything,
    "http-custom-headers": call_as_told,
    "http-invalid-tool-headers": call_what_is_valid,
    "json-schema-ref-no-deref": list_tools,
    "json-schema-2020-12-preservation": echo_schema,
}


def fill_in(form: Any) -> dict[str, Any]:
    """Accept, and leave every field to its default but one that a scenario wants to see."""
    return {"confirmed": True} if "confirmed" in form.requested_schema["properties"] else {}


def say_something(asked: Any) -> CreateMessageResult:
    return CreateMessageResult(
        role="assistant", content=TextContent(text="something"), model="none"
    )


REFUSED = {
    "auth/resource-mismatch": OAuthFlowError,
    "auth/iss-supported-missing": OAuthFlowError,
    "auth/iss-wrong-issuer": OAuthFlowError,
    "auth/iss-unexpected": OAuthFlowError,
    "auth/iss-normalized": OAuthFlowError,
    "auth/metadata-issuer-mismatch": OAuthFlowError,
    "auth/scope-retry-limit": AuthenticationFailed,
}
"""The scenarios in which a client has to give up, with how that shows."""


async def main(url: str) -> None:
    """Do what the scenario needs a client to do."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    expected = REFUSED.get(scenario)
    try:
        await tell(scenario, url)
    except Exception as error:
        if expected is None or not isinstance(error, expected):
            raise
    else:
        if expected is not None:
            raise SystemExit(f"{scenario}: nothing was refused")


async def tell(scenario: str, url: str) -> None:
    """Run the story of a scenario, logged in where it is about that."""
    client = Client(
        url,
        timeout=30,
        auth=await login(scenario, url) if scenario.startswith("auth/") else None,
        on_elicit=fill_in,
        on_sample=say_something,
        roots=["file:///work"],
    )
    async with client:
        await STORIES.get(scenario, call_every_tool)(client)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
