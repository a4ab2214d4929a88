"""What the ledgers say of each exchange, put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .ledger import Event, keys_of


@dataclass
class Story:
    """What the ledgers say of one exchange."""

    sent: Event
    heads: dict[int, int] = field(default_factory=dict)
    ends: dict[int, Event] = field(default_factory=dict)
    passed: dict[int, Event] = field(default_factory=dict)
    messages: list[Event] = field(default_factory=list)
    gave_up: bool = False
    cancelled: bool = False
    leaves: bool = False
    turned_away: str = ""
    """What its caller was told, if it was that nothing has run."""
    baffled: str = ""
    """What its caller was told, if it made no sense."""

    @property
    def key(self) -> str:
        return str(self.sent["x"])

    @property
    def nonce(self) -> str:
        """What its tool leaves behind, and echoes."""
        return str(self.sent.get("nonce") or self.key)

    @property
    def may_run(self) -> int:
        """How often its tool may run: what may be repeated is repeated once."""
        return 2 if self.sent.get("safe") else 1

    @property
    def is_request(self) -> bool:
        """Whether it is a request of JSON-RPC; the end of a client is none."""
        return bool(self.sent["what"] != "close")

    @property
    def is_listen(self) -> bool:
        """Whether it lasts for as long as its client likes."""
        return bool(self.sent["what"] == "subscriptions/listen")

    @property
    def last(self) -> int:
        """The number of its last connection."""
        return max(self.ends, default=1)

    @property
    def terminals(self) -> list[Event]:
        """Its terminal messages. What a GET is refused with is none."""
        return [
            each
            for each in self.messages
            if "method" not in each["message"]
            and (each["a"] == 1 or self.heads.get(each["a"]) == 200)
        ]

    @property
    def is_told_twice(self) -> bool:
        """Whether it has been told its end more than once, without having asked for it again.

        An end that came without an event id, as when the database was away, on a connection that
        the client left in that moment to come back later: it has asked for that again.
        """
        ends = [
            each
            for each in self.terminals
            if each["event"] or self.ends.get(each["a"], {}).get("how") != "left"
        ]
        return len(ends) > 1

    @property
    def has_place(self) -> bool:
        """Whether its client has an event id to come back with."""
        return bool(self.ends[self.last].get("place"))

    @property
    def comes_back(self) -> bool:
        """Whether its client, having left, wants to know the rest, and can."""
        return not self.cancelled and not self.is_listen and self.has_place


def stories(events: Iterable[Event]) -> dict[str, Story]:
    stories: dict[str, Story] = {}
    for each in events:
        if each["e"] == "sent":
            stories[each["x"]] = Story(each)
        else:
            # The requests of a batch have their connections in common.
            for key in keys_of(each):
                if key in stories:
                    _add(stories[key], each)
    return stories


def _add(story: Story, each: Event) -> None:
    match each["e"]:
        case "head":
            story.heads[each["a"]] = each["status"]
        case "end":
            story.ends[each["a"]] = each
        case "passed":
            story.passed[each["a"]] = each
        case "message":
            story.messages.append(each)
        case "gave_up":
            story.gave_up = True
        case "cancel":
            story.cancelled = True
        case "leaves":
            story.leaves = True
        case "turned_away":
            story.turned_away = each["why"]
        case "baffled":
            story.baffled = each["why"]


def named(story: Story, name: str) -> Iterator[Event]:
    """Yield the notifications of a name that count.

    What came without an event id, as when the database was away, its client cannot name when it
    comes back: it gets that again, with its id.
    """
    shown = [a for a, status in story.heads.items() if status == 200]
    # Of our own client is written down what reached its callers, whatever connection it came on.
    on_wire = story.sent.get("resumable") and story.sent.get("by") != "library"
    lasting = max(shown, default=0) if on_wire else 0
    for each in story.messages:
        counts = each["event"] or each["a"] >= lasting
        if counts and each["message"].get("method") == f"notifications/{name}":
            yield each


def words(story: Story) -> list[int]:
    return [each["message"]["params"]["data"]["number"] for each in named(story, "message")]


def bears(message: Any) -> list[str]:
    """Return whose a notification, a question or a result that asks is, where it says so."""
    if "result" in message:
        asked = message["result"].get("inputRequests") or {}
        return [str(each["params"]["message"]).split()[0] for each in asked.values()]
    params = message.get("params", {})
    match message.get("method"):
        case "notifications/message":
            return [str(params["data"]["nonce"])]
        case "notifications/progress":
            return [str(params["progressToken"])]
        case "elicitation/create":
            return [str(params["message"]).split()[0]]
    return []
