"""The ledgers: what each client, the balancer and the saboteur saw, one line of JSON an event.

``t`` is the monotonic clock, which all processes of one host share, so that the lines of several
ledgers can be put into one order. ``x`` is the key of an exchange: a request and whatever comes of
it, on however many connections (``a``, counted from 1); what concerns all requests of a batch has
their keys, joined by ``+``. ``s`` is the key of a session. The kinds of event, ``e``:

========== ========================================================================================
opened     a session was opened
ending     its client begins to end it: from here on 404 is right
sent       a request goes out: ``what``, its JSON-RPC ``id``, ``words`` that it will hear, ``nonce``
           that its tool leaves; ``safe`` if it may be repeated; ``by`` whom, if not on bare sockets
try        one connection of it: a POST, or a GET from ``place``
head       status line and headers have come: ``status``
message    a message has come, with the ``event`` id if it had one
end        a connection has ended: ``how`` is ``complete``, ``broken``, ``refused`` (not even a
           status line came) or ``left`` (by the client)
cancel     the client has asked for the end of the exchange
gave_up    the client has waited for the bound: nobody has told it anything
leaves     the client has gone, on purpose, and wants to know nothing more
unknown    (our client) its caller was told that the outcome is unknown
turned_away (our client) its caller was told that the server has not taken the request up
baffled    (our client) its caller was told that the server's answer makes no sense
stray      (our client) something came to a caller that nobody waits for
wants      the session wants to hear of changes of ``uri``
listens    one connection of its own stream, or of what takes its place: ``status``
own        a message has come there
unheard    a change was made, and a client that listens has waited for the bound to hear of it
untaken    a notification, or the answer to a question, was refused or could not be delivered
passed     (balancer) one connection: the ``worker``, ``status``, and ``how`` it ended:
           ``complete``, ``cut``, ``broke`` (the worker did), ``left`` (the client did), ``nobody``
           (no worker was there)
act        (saboteur) ``name``, ``worker``, from ``begun`` to ``t``
========== ========================================================================================
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def keys_of(event: Event) -> list[str]:
    """Return the keys of the exchanges that an event concerns."""
    return (event.get("x") or "").split("+")


class Ledger:
    """Appends to one file. A line is written at once and whole, but not fsynced."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1, encoding="utf-8")

    def note(self, e: str, **facts: Any) -> None:
        """Note an event."""
        line = {"t": time.monotonic(), "e": e, **facts}
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")


def nonce() -> str:
    """Return a key that no other request has."""
    return uuid.uuid4().hex[:20]


def read(paths: Iterable[Path]) -> list[Event]:
    """Return the events of several ledgers in the order of their times."""
    events = [event for path in paths for event in _lines(path)]
    return sorted(events, key=lambda event: event["t"])


def _lines(path: Path) -> Iterator[Event]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
