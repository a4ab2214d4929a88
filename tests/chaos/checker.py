"""Reads the ledgers and the rows when everything is over, and counts. What the words mean:

request
    A JSON-RPC request of a client, with whatever comes of it on however many connections.
accepted
    A status line has come. What broke off before that may have run or not; nobody was told.
answered, failed
    It has one terminal message, under its own id: a result; an error, or a result that says so.
closed
    It has no terminal message, and its connection was closed by an act of the saboteur (`cut`: its
    cut; `worker`: an act that ended the worker), or its session was ended by its client, and there
    was no event id with which to come back, or nothing to come back to. `left`: the client itself
    closed it for good, which cancels.
lost
    It has no terminal message although its client could come back, or although no act explains
    why its connection closed; or it was answered, and a numbered word before its answer is
    missing.
duplicated
    It has two terminal messages, on whatever connections; or an event id, a word or a value of
    progress has come twice, or in disorder. A word that came without an id, since the database was
    away, on a connection that broke off, is to come again.
misrouted
    A message came on its connection that bears another's id (its type counts), nonce or token, or
    to a caller of our client that does not wait for it any more; on the session's own stream,
    anything but what the session subscribed to.
hung
    Its client has waited for :data:`~tests.chaos.following.BOUND` seconds, through all that it
    tried, and gave up.
run twice, unfounded
    Its tool has left two rows, or three if it may be repeated; or none, although the answer was a
    result; or one, although our client has told its caller that it was not taken up; or it was
    ended because its process had died, and no act has stopped a process that it was sent to.
unheard
    A change was made while a client listened that could not have missed it, and did.
untaken
    A notification or an answer of a client was refused, in a session that lives; or a request as
    wrong, which none is.
sessions lost
    One was answered with 404 although its client had not begun to end it.
rows left
    Requests still `running`, and streams of calls still open, after a while of quiet.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .ledger import Event
from .stories import Story, bears, named, stories, words

FAILURES = (
    *["lost", "duplicated", "misrouted", "hung", "run twice", "unfounded"],
    *["unheard", "untaken", "sessions lost", "rows left"],
)
"""What there must be none of."""
ENDING_ACTS = {"kill", "terminate", "all_down", "all_terminate"}
STOPPING_ACTS = ENDING_ACTS | {"stand_still", "doze"}
DEAD = "The process that ran this request has ended"
"""What the error says with which others end the call of a process that they take for dead."""
SLACK = 1.0
"""Seconds by which the end of a connection may follow the act that ended it."""
FAULTS_OF_REQUESTS = {-32700, -32600, -32601, -32602}
"""Errors that say that a request is wrong. Those of the clients here are right."""


@dataclass
class Figures:
    """The outcome: how many of each, and which ones where there must be none."""

    counts: Counter[str] = field(default_factory=Counter)
    closed_by: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    offenders: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """By figure: the key of each exchange or session, and what is wrong with it."""
    longest: float = 0.0
    """Seconds from a request to its terminal message, at most."""

    @property
    def failed(self) -> bool:
        """Whether anything is there that must not be."""
        return any(self.offenders.get(each) for each in FAILURES)

    def blame(self, figure: str, key: str, why: str) -> None:
        """Count something that must not be."""
        self.offenders[figure].setdefault(key, why)


def check(
    events: Iterable[Event], effects: Mapping[str, int], rows_left: Iterable[str] = ()
) -> Figures:
    """Return the figures. ``effects`` counts the rows of each nonce that calls have left."""
    return _Checker(list(events), effects).figures(rows_left)


class _Checker:
    def __init__(self, events: list[Event], effects: Mapping[str, int]) -> None:
        self._events = events
        self._effects = effects
        self._acts = [each for each in events if each["e"] == "act"]
        self._ending = {each["s"]: each["t"] for each in events if each["e"] == "ending"}
        self._found = Figures()
        self._found.counts["acts"] = len(self._acts)

    def figures(self, rows_left: Iterable[str]) -> Figures:
        found = stories(self._events)
        for story in found.values():
            if story.is_request:
                self._count(story)
            elif story.gave_up:
                self._found.blame("hung", story.key, "the client was never closed")
        self._check_sessions()
        for nonce, count in self._effects.items():
            if count > (found[nonce].may_run if nonce in found else 1):
                self._found.blame("run twice", nonce, f"left {count} rows")
        for row in rows_left:
            self._found.blame("rows left", row, row)
        for figure in FAILURES:
            self._found.counts[figure] = len(self._found.offenders[figure])
        return self._found

    def _count(self, story: Story) -> None:
        counts = self._found.counts
        counts["requests"] += 1
        counts["accepted"] += bool(story.heads)
        counts["resumptions"] += sum(number > 1 for number in story.heads)
        self._check_routes(story)
        self._check_order(story)
        terminals = story.terminals
        if story.is_told_twice:
            self._found.blame("duplicated", story.key, f"{len(terminals)} terminal messages")
        if terminals:
            self._count_ended(story, terminals[0])
        elif story.turned_away:
            self._count_turned_away(story)
        else:
            self._count_unended(story)

    def _count_ended(self, story: Story, terminal: Event) -> None:
        waited = terminal["t"] - story.sent["t"]
        if not story.is_listen:
            self._found.longest = max(self._found.longest, waited)
        message = terminal["message"]
        result = message.get("result")
        if result is None or result.get("isError"):
            self._found.counts["failed"] += 1
            self._found.errors[_reason(message)] += 1
            if message.get("error", {}).get("code") in FAULTS_OF_REQUESTS:
                self._found.blame("untaken", story.key, f"{message} for what was in order")
            if DEAD in _reason(message) and not self._was_stopped(story, terminal["t"]):
                self._found.blame("unfounded", story.key, "ended for dead, and nothing had died")
            return
        self._found.counts["answered"] += 1
        nonce = _text(result)
        if nonce is not None:
            if nonce != story.nonce:
                self._found.blame("misrouted", story.key, f"answered for {nonce!r}")
            if not self._effects.get(story.nonce):
                self._found.blame("unfounded", story.key, "answered, and has left no row")
        spoken, heard = story.sent.get("words"), len(words(story))
        if spoken is not None and heard < spoken:
            self._found.blame("lost", story.key, f"answered after {heard} of {spoken} words")

    def _count_turned_away(self, story: Story) -> None:
        self._found.counts["failed"] += bool(story.heads)
        self._found.errors[story.turned_away[:60]] += 1
        if self._effects.get(story.nonce):
            why = f"has left a row, though its caller was told: {story.turned_away}"
            self._found.blame("unfounded", story.key, why)

    def _count_unended(self, story: Story) -> None:
        reason = self._reason_of_end(story)
        if reason in ("lost", "hung"):
            status = story.heads.get(story.last)
            why = f"the last connection ended with status {status}, {story.ends.get(story.last)}"
            self._found.blame(reason, story.key, f"{story.baffled} {why}".strip())
        elif story.heads:
            self._found.counts["closed"] += 1
            self._found.closed_by[reason] += 1
        else:
            self._found.closed_by[f"{reason}, not accepted"] += 1

    def _reason_of_end(self, story: Story) -> str:
        if story.gave_up:
            return "hung"
        if story.baffled:
            return "lost"
        if story.leaves:
            return "left"
        end = story.ends.get(story.last)
        if end is None or (end["how"] == "left" and not story.comes_back):
            return "left"
        if story.sent.get("s") in self._ending and end["t"] > self._ending[story.sent["s"]]:
            return "session ended"
        if story.sent.get("resumable") and story.has_place:
            return "lost"  # it could come back, and was told that there is nothing
        passed = story.passed.get(story.last)
        if passed is None:
            # A connection that is used again may be cut before its next request is read.
            return "cut" if end["how"] == "refused" and self._is_cut_at(end["t"]) else "lost"
        return self._who_closed(passed) or "lost"

    def _is_cut_at(self, when: float) -> bool:
        return any(
            act["name"] == "cut" and act["begun"] <= when <= act["t"] + SLACK for act in self._acts
        )

    def _who_closed(self, passed: Event) -> str | None:
        """Return what closed a connection, `None` if nothing did that may."""
        if passed["how"] in ("cut", "nobody"):
            return str(passed["how"])
        for act in self._acts:
            is_meant = act["name"].startswith("all_") or act["worker"] == passed["worker"]
            in_time = act["begun"] <= passed["t"] <= act["t"] + SLACK
            if act["name"] in ENDING_ACTS and is_meant and in_time:
                return "worker" if passed["how"] == "broke" else None
        return None

    def _was_stopped(self, story: Story, until: float) -> bool:
        """Return whether, while a request ran, a process stood still that it had been sent to."""
        workers = {passed["worker"] for passed in story.passed.values()}
        return any(
            act["name"] in STOPPING_ACTS
            and (act["name"].startswith("all_") or act["worker"] in workers)
            and act["begun"] <= until
            and story.sent["t"] <= act["t"] + SLACK
            for act in self._acts
        )

    def _check_routes(self, story: Story) -> None:
        own_id, terminals = json.dumps(story.sent["id"]), story.terminals
        for each in story.messages:
            message = each["message"]
            strangers = set(bears(message)) - {story.key, story.nonce}
            if each in terminals and json.dumps(message.get("id")) != own_id:
                strangers.add(json.dumps(message.get("id")))
            if strangers:
                self._found.blame("misrouted", story.key, f"{strangers} came: {message}")

    def _check_order(self, story: Story) -> None:
        ids = [each["event"] for each in story.messages if each.get("event")]
        if len(ids) != len(set(ids)):
            self._found.blame("duplicated", story.key, "an event id came twice")
        numbers = words(story)
        if numbers != sorted(set(numbers)):
            self._found.blame("duplicated", story.key, f"words came as {numbers}")
        progress = [each["message"]["params"]["progress"] for each in named(story, "progress")]
        if progress != sorted(set(progress)):
            self._found.blame("duplicated", story.key, f"progress came as {progress}")

    def _check_sessions(self) -> None:
        wants = {each["s"]: each["uri"] for each in self._events if each["e"] == "wants"}
        seen: dict[str, set[str]] = defaultdict(set)
        for each in self._events:
            session = each.get("s") or ""
            if each["e"] == "opened":
                self._found.counts["sessions"] += 1
            elif each["e"] == "stray":
                self._found.blame("misrouted", each["x"], f"nobody waits for {each['message']}")
            elif each["e"] == "unheard":
                self._found.blame("unheard", each["x"], f"in session {session}")
            elif each["e"] == "own":
                if each["event"] in seen[session]:
                    self._found.blame("duplicated", each["x"], f"{each['event']} came twice")
                seen[session].add(each["event"])
                if not _may_hear(each["message"], wants.get(session)):
                    self._found.blame("misrouted", each["x"], f"{each['message']}")
            elif each["e"] == "untaken" and not self._is_ending(session, each["t"]):
                self._found.blame("untaken", session, f"{each['status']} for {each['message']}")
            self._check_status(each, session)

    def _check_status(self, each: Event, session: str) -> None:
        is_gone = each["e"] in ("head", "listens", "untaken") and each["status"] == 404
        if is_gone and not self._is_ending(session, each["t"]):
            self._found.blame("sessions lost", session, f"404 at {each}")

    def _is_ending(self, session: str, when: float) -> bool:
        return session in self._ending and self._ending[session] <= when


def _may_hear(message: Any, uri: str | None) -> bool:
    method = message.get("method", "")
    if method == "notifications/resources/updated":
        return bool(message["params"]["uri"] == uri)
    return method.endswith("/list_changed")


def _text(result: Any) -> str | None:
    """Return the nonce that a tool's result echoes; of other results, nothing."""
    content = result.get("content")
    return str(content[0]["text"]) if content else None


def _reason(message: Any) -> str:
    if "result" in message:
        return f"isError: {(_text(message['result']) or '')[:60]}"
    return f"{message['error']['code']} {message['error']['message'][:60]}"
