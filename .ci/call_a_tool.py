"""Lists the tools of an endpoint, once it is there, and calls one. Arguments: URL, its process.

With nothing but Python, since it says whether an environment is complete.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from typing import Any
from urllib.error import URLError

SECONDS = 300
VERSION = "2026-07-28"


def ask(url: str, method: str, **params: Any) -> Any:
    """Send one request of the revision without sessions, and return its result."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "ci", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read().decode()
    # A stream of events, if the tool has said something; its last one is the response.
    last = text.rpartition("data: ")[2] if text.startswith(("event", "data", "id", ":")) else text
    return json.loads(last)["result"]


def wait(url: str, process: int) -> Any:
    """Return the tools as soon as there are any; give up when the process has ended."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        os.kill(process, 0)  # raises if it is no more
        try:
            return ask(url, "tools/list")["tools"]
        except (URLError, ConnectionError):
            time.sleep(0.2)
    raise SystemExit(f"{url} was not there after {SECONDS} seconds")


def main(url: str, process: str) -> None:
    """List, and call the tool that the README's tour begins with."""
    tools = {each["name"] for each in wait(url, int(process))}
    result = ask(url, "tools/call", name="search_tickets", arguments={"limit": 2})
    found = result["structuredContent"]
    print(f"{len(tools)} tools; search_tickets: {json.dumps(found)[:200]}")
    if "search_tickets" not in tools or result.get("isError") or not found:
        raise SystemExit(f"A call of search_tickets: {result}")


if __name__ == "__main__":
    main(*sys.argv[1:])
