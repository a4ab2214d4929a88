"""The names of OpenTelemetry's semantic conventions for MCP, which are still in development.

They moved to the conventions for generative AI in 2026. What they call something is written here
alone, and none of it is imported: packages of the conventions change names between versions.
"""

from __future__ import annotations

from typing import Final

METHOD: Final = "mcp.method.name"
REVISION: Final = "mcp.protocol.version"
SESSION_ID: Final = "mcp.session.id"
RESOURCE_URI: Final = "mcp.resource.uri"
REQUEST_ID: Final = "jsonrpc.request.id"
TOOL: Final = "gen_ai.tool.name"
PROMPT: Final = "gen_ai.prompt.name"
OPERATION: Final = "gen_ai.operation.name"
EXECUTE_TOOL: Final = "execute_tool"
ERROR_TYPE: Final = "error.type"
STATUS_CODE: Final = "rpc.response.status_code"
USER_ID: Final = "enduser.id"

TOOL_ERROR: Final = "tool_error"
"""``error.type`` of a result in which a tool says what went wrong."""
OTHER: Final = "_OTHER"
"""Stands for what a client may have made up, as for unknown methods of HTTP."""

OPERATION_DURATION: Final = "mcp.server.operation.duration"
SESSION_DURATION: Final = "mcp.server.session.duration"
SECONDS: Final = "s"
BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Boundaries of the histograms, in seconds."""
