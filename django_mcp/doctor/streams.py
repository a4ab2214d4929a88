"""Measures whether events come through as they are sent.

What is measured is a stream whose first event is due at once: ``subscriptions/listen`` has to be
acknowledged before anything else (2026-07-28, basic/patterns/subscriptions, "Acknowledgment"), and
in a session the stream of a GET is asked for, of which a server may say nothing. The time runs from
the request to the first byte of the body. Encodings are offered as clients offer them, so that a
proxy which compresses streams does so here, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import httpx

from ..protocol import sse
from .asking import Answer, NoAnswer, response
from .endpoint import of_caching
from .findings import Finding, broken, good, note, shown, warning
from .visit import ID, Visit, in_session, modern

LATE_SECONDS: Final = 1.0
QUIET_SECONDS: Final = 60.0
"""So long a proxy waits for the next byte, if nobody has told it otherwise."""
STREAM_BYTES: Final = 64 * 1024
ENCODINGS: Final = {"Accept-Encoding": "gzip, deflate, br"}
LISTS: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")

BUFFER_CURE: Final = (
    "Let nothing on the way gather events: in nginx, proxy_buffering off or the answer's "
    "X-Accel-Buffering: no, and proxy_http_version 1.1; and no middleware that reads the whole "
    "answer."
)


@dataclass(slots=True)
class Measured:
    """What came of a stream, and when. Seconds since the request."""

    answer: Answer
    first: float | None = None
    """When the first byte of the body came."""
    last: float | None = None
    ended: float | None = None
    """When the stream ended; ``None`` if it did not while it was watched."""
    is_answered: bool = False
    """Whether the server itself has ended it, by the response."""


async def check_stream(visit: Visit) -> AsyncIterator[Finding]:
    """Check that a stream of events comes through unbuffered, uncompressed and uncached."""
    if not visit.revisions:
        return
    is_modern = any(revision.modern for revision in visit.revisions)
    if is_modern:
        headers, body = modern(
            "subscriptions/listen", {"notifications": dict.fromkeys(LISTS, True)}
        )
        method, what = "POST", "subscriptions/listen"
    elif visit.session:
        headers, body, method, what = in_session(visit), None, "GET", "the stream of the session"
    else:
        return
    try:
        measured = await _measure(visit, method, headers, body)
    except NoAnswer as error:
        if is_modern:
            yield _held_back(what, str(error))
        else:
            yield note("stream", f"Nothing came of {what}: {error}. It could not be measured.")
        return
    for finding in _judged(visit, measured, what, is_due=is_modern):
        yield finding


async def _measure(
    visit: Visit, method: str, headers: dict[str, str], body: dict[str, Any] | None
) -> Measured:
    begun = time.monotonic()
    async with visit.asker.stream(
        method, headers={"Accept": _accept(method), **ENCODINGS, **headers}, body=body
    ) as stream:
        url = str(stream.request.url)
        answer = Answer(method, url, stream.status_code, stream.headers, b"", is_whole=False)
        measured = Measured(answer)
        if answer.status == 200:
            await _watch(stream, measured, begun, visit.options.watch)
        return measured


def _accept(method: str) -> str:
    return sse.MEDIA_TYPE if method == "GET" else f"application/json, {sse.MEDIA_TYPE}"


async def _watch(stream: httpx.Response, measured: Measured, begun: float, seconds: float) -> None:
    reader, size = sse.EventReader(STREAM_BYTES), 0
    try:
        async with asyncio.timeout(seconds):
            async for chunk in stream.aiter_raw():
                measured.last = time.monotonic() - begun
                measured.first = measured.first or measured.last
                size += len(chunk)
                if size > STREAM_BYTES:
                    return
                if not measured.answer.is_compressed:
                    _read(reader, chunk, measured)
            measured.ended = time.monotonic() - begun
    except TimeoutError:
        return
    except httpx.ReadTimeout:
        return
    except httpx.HTTPError:
        measured.ended = time.monotonic() - begun


def _read(reader: sse.EventReader, chunk: bytes, measured: Measured) -> None:
    try:
        events = list(reader.feed(chunk))
    except sse.EventTooLarge:
        return
    measured.is_answered = measured.is_answered or any(response(each.data, ID) for each in events)


def _judged(visit: Visit, measured: Measured, what: str, *, is_due: bool) -> list[Finding]:
    answer = measured.answer
    if answer.status != 200 or answer.media_type != sse.MEDIA_TYPE:
        return [
            note(
                "no-stream",
                f"The server shows no stream for {what} ({answer.status}, {answer.kind}). Whether "
                "a proxy holds events back was not measured.",
            )
        ]
    findings = of_caching(answer)
    if answer.is_compressed:
        encoding = shown(answer.header("content-encoding"))
        findings.append(
            broken(
                "stream-compressed",
                f"The stream is compressed ({encoding}), so events wait until a block is full.",
                "Leave text/event-stream out of what is compressed (nginx: gzip_types; Django: "
                "GZipMiddleware leaves it out).",
            )
        )
    if measured.first is None:
        findings.append(_of_silence(visit, what, is_due=is_due))
    elif measured.first > LATE_SECONDS and is_due:
        came = f"its first event came after {measured.first:.1f} s, and is due at once"
        findings.append(_held_back(what, came))
    else:
        findings.append(_of_end(visit, measured, what))
    return findings


def _of_silence(visit: Visit, what: str, *, is_due: bool) -> Finding:
    seconds = f"{visit.options.watch:g} s"
    if is_due:
        return _held_back(what, f"no event came in {seconds}, and the first is due at once")
    return note(
        "stream-silent",
        f"In {seconds} {what} has said nothing. Either the server has nothing to say, or something "
        "on the way holds it back.",
    )


def _held_back(what: str, why: str) -> Finding:
    text = f"Events do not come through as they are sent: of {what} {why}."
    return broken("buffered", text, BUFFER_CURE)


def _of_end(visit: Visit, measured: Measured, what: str) -> Finding:
    first = f"The first event of {what} came after {(measured.first or 0) * 1000:.0f} ms"
    if measured.is_answered:
        return note(
            "stream-short",
            f"{first}, and with it the end: the server keeps no stream open. Whether a proxy holds "
            "events back was not measured.",
        )
    if measured.ended is not None:
        return warning(
            "stream-cut",
            f"{first}, and the stream was cut off after {measured.ended:.1f} s.",
            "Raise the time that proxies wait for the next byte (nginx: proxy_read_timeout), above "
            "the pause between the server's comments.",
        )
    quiet = visit.options.watch - (measured.last or 0)
    if quiet > QUIET_SECONDS:
        return warning(
            "stream-quiet",
            f"{first}, and nothing in the last {quiet:.0f} s. Proxies cut off what is silent.",
            "Send a comment every 15 seconds.",
        )
    text = f"{first}, and the stream stayed open for the {visit.options.watch:g} s it was watched."
    return good("stream", text)
