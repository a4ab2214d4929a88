"""What the test site offers."""

from __future__ import annotations

from django_mcp import Context, ToolError, mcp


@mcp.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool
async def aadd(a: int, b: int) -> int:
    """Add two numbers, asynchronously."""
    return a + b


@mcp.tool
def whoami(ctx: Context) -> str:
    """Say who is calling."""
    return str(ctx.user.username or "anonymous")


@mcp.tool
def fail(kind: str) -> str:
    """Fail as told."""
    if kind == "tool":
        raise ToolError("told so")
    raise RuntimeError("a secret")


@mcp.resource("note://{number}")
def note(number: int) -> str:
    """A note."""
    return f"Note {number}"


@mcp.prompt
def greet(name: str, tone: str = "warm") -> str:
    """Greet somebody."""
    return f"Greet {name} in a {tone} tone."
