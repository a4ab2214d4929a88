"""What the tests call, and who they say that they are."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Annotated, Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from pydantic import BeforeValidator

from django_mcp import Ask, Context, MCPServer, ToolError
from django_mcp.auth import Principal, Refusal, nonblocking
from tests.support.lasting import last

server = MCPServer("observed", version="1")
failing = MCPServer("failing", version="1")
BOUND = 20


@dataclass
class Seen:
    """What functions of the site have noticed."""

    threads: list[str] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)
    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go_on: threading.Event = field(default_factory=threading.Event)


seen = Seen()
look: Any = None
"""What every function calls, if a test has set it."""


def reset() -> None:
    """Begin a test."""
    global seen, look
    seen, look = Seen(), None


def note() -> None:
    """Note where a function runs, and whatever the test wants to know there."""
    seen.threads.append(threading.current_thread().name)
    if look is not None:
        seen.notes.append(look())


class Broken(Exception):
    """What nobody has foreseen."""


@nonblocking
def bearer(request: HttpRequest) -> Principal | Refusal:
    """Let in whoever has shown a token; the user is known by its first letter."""
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if not token:
        return Refusal()
    if token.startswith("crash"):
        raise Broken("in AUTH")
    return Principal(user() if token.startswith("u") else AnonymousUser(), client_id="desk")


def user() -> Any:
    """Return the user, whose row a fixture has made."""
    return get_user_model()(pk=7, username="anna", email="anna@example.com")


@server.tool
def add(a: int, b: int) -> int:
    """Add."""
    note()
    return a + b


@server.tool
async def aadd(a: int, b: int) -> int:
    """Add, on a loop."""
    note()
    return a + b


@server.tool
def crash(ctx: Context, text: str = "") -> None:
    """Raise what nobody has foreseen."""
    note()
    raise Broken(text)


@server.tool
async def acrash(ctx: Context, text: str = "") -> None:
    """Do so on a loop."""
    note()
    raise Broken(text)


@server.tool
def speak_and_crash(ctx: Context) -> None:
    """Do so when the answer is a stream already."""
    ctx.log("info", "before")
    last(ctx)
    note()
    raise Broken


@server.tool
def refuse() -> None:
    """Say what the model did wrong."""
    raise ToolError("Not today")


@server.tool
def unsendable() -> dict[str, Any]:
    """Return what no JSON has a form for."""
    return {"text": "\ud800"}


@server.tool
def unencodable() -> str:
    """Return what is found to have no form in JSON when all is encoded."""
    return "\ud800"


@server.tool(timeout=0.1)
def too_long(ctx: Context) -> None:
    """Work for longer than it may."""
    while not ctx.cancelled:
        time.sleep(0.01)


@server.tool
def wait() -> str:
    """Wait until a test lets it go on."""
    note()
    seen.entered.release()
    assert seen.go_on.wait(BOUND)
    return "waited"


@server.tool
def ask(name: Annotated[str, Ask("Who?")]) -> str:
    """Ask the user first."""
    return name


@server.tool
def ask_and_crash(ctx: Context, name: Annotated[str, Ask("Who?")]) -> str:
    """Ask the user first, and fail then."""
    state = ctx.request.body
    raise Broken(f"{len(state)} bytes for {name}")


@server.resource("note://{number}")
def read_note(number: int) -> str:
    """Read a note."""
    note()
    return f"note {number}"


@server.prompt
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}"


def may(user: Any) -> bool:
    """Fail before the function is reached."""
    raise Broken("in a permission")


@failing.tool(permission=may)
def guarded() -> None:
    """Never run."""


def fail(value: Any) -> int:
    """Fail while the arguments are made."""
    raise Broken("in an argument")


@failing.tool
def number(value: Annotated[int, BeforeValidator(fail)]) -> int:
    """Take what fails while the arguments are made."""
    return value
