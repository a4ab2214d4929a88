"""The official Python client's walk through the bookshop, as what it received at every step."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation, PromptReference, ResourceTemplateReference
from pydantic import BaseModel, Field, TypeAdapter

SECONDS = 20
STEPS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("walk.json").read_text(encoding="utf-8")
)
REFERENCE: TypeAdapter[PromptReference | ResourceTemplateReference] = TypeAdapter(
    Annotated[PromptReference | ResourceTemplateReference, Field(discriminator="type")]
)

Params = dict[str, Any]
CALLS: dict[str, Callable[[Client, Params], Awaitable[BaseModel]]] = {
    "tools/list": lambda client, _: client.list_tools(),
    "tools/call": lambda client, params: client.call_tool(params["name"], params["arguments"]),
    "resources/list": lambda client, _: client.list_resources(),
    "resources/templates/list": lambda client, _: client.list_resource_templates(),
    "resources/read": lambda client, params: client.read_resource(params["uri"]),
    "prompts/list": lambda client, _: client.list_prompts(),
    "prompts/get": lambda client, params: client.get_prompt(params["name"], params["arguments"]),
    "completion/complete": lambda client, params: client.complete(
        REFERENCE.validate_python(params["ref"]), params["argument"]
    ),
}


async def walk(url: str, mode: str) -> dict[str, Any]:
    """Connect in the SDK's `mode` ("legacy" or "auto"), take every step, and close."""
    traffic: list[dict[str, Any]] = []
    story: dict[str, Any] = {}

    async def record(response: httpx2.Response) -> None:
        traffic.append(
            {
                "method": response.request.method,
                "status": response.status_code,
                "sent": dict(response.request.headers),
                "session": response.headers.get("mcp-session-id"),
            }
        )

    async with httpx2.AsyncClient(timeout=SECONDS, event_hooks={"response": [record]}) as http:
        transport = streamable_http_client(url, http_client=http)
        info = Implementation(name="walker", version="1.0")
        async with Client(
            transport, mode=mode, client_info=info, read_timeout_seconds=SECONDS
        ) as client:
            story["connected"] = _connected(client)
            for step, words in STEPS.items():
                story[step] = await _attempt(client, words["method"], words.get("params", {}))
    return story | {"traffic": traffic}


def _connected(client: Client) -> dict[str, Any]:
    return {
        "protocolVersion": client.protocol_version,
        "serverInfo": plain(client.server_info) if client.server_info else None,
        "instructions": client.instructions,
    }


async def _attempt(client: Client, method: str, params: Params) -> Any:
    try:
        return plain(await CALLS[method](client, params))
    except MCPError as error:
        return {"error": plain(error.error)}


def plain(model: BaseModel) -> Any:
    """The model as it looks on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
