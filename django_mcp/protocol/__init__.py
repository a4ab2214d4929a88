"""The rules of MCP as plain functions over values: no Django, no asyncio, no I/O."""
