"""Checks of the documents that clients look for around an endpoint, before they log in.

RFC 9728, RFC 8414 and OpenID Connect Discovery, each with the endpoint's path behind it and
without, and below the endpoint: clients go on after a 404, and show people whatever else they get.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from .asking import Answer, NoAnswer
from .findings import Finding, broken, good, in_words, shown, warning
from .visit import Visit

DOCUMENTS: Final = (
    "oauth-protected-resource",
    "oauth-authorization-server",
    "openid-configuration",
)
MOST_NAMED: Final = 3

Answers = Mapping[str, Answer]
Group = tuple[Callable[[Answer], bool], Callable[[str], Finding]]
"""Which answers are meant, and what is to be said of the places that gave them."""


def places(visit: Visit) -> list[str]:
    """Return the paths at which clients look."""
    path = visit.path
    found = [f"/.well-known/{name}{path}" for name in DOCUMENTS]
    if path:
        found += [f"/.well-known/{name}" for name in DOCUMENTS]
        found += [f"{path}/.well-known/{name}" for name in DOCUMENTS]
    return found


def is_document(answer: Answer) -> bool:
    """Return whether an answer is a document."""
    return answer.status == 200 and answer.object() is not None


async def check_documents(visit: Visit) -> AsyncIterator[Finding]:
    """Check that each place has a document or a quiet 404, and nothing else."""
    found, silent = await _answers(visit, "GET")
    if silent:
        named = _named(list(silent))
        yield broken(
            "document-silent",
            f"There is no answer at {named}: {next(iter(silent.values()))}. Clients look there.",
            "Answer every path of the site, with 404 where there is nothing.",
        )
    said = False
    for is_meant, say in GROUPS:
        meant = [place for place, answer in found.items() if is_meant(answer)]
        if meant:
            said = True
            yield say(_named(meant))
    if not said:
        there = [place for place, answer in found.items() if is_document(answer)]
        text = "There is none, and a quiet 404 wherever clients look."
        if there:
            text = f"There is one at {_named(there)}, and a quiet 404 where clients look else."
        yield good("documents", text)


async def check_head(visit: Visit) -> AsyncIterator[Finding]:
    """Check that HEAD has the answer of GET, without its body (RFC 9110, section 9.3.2)."""
    got, _ = await _answers(visit, "GET")
    asked, _ = await _answers(visit, "HEAD")
    differ = [
        f"{place} ({asked[place].status} instead of {answer.status})"
        for place, answer in got.items()
        if is_document(answer) and place in asked and asked[place].status != answer.status
    ]
    if differ:
        yield warning(
            "document-head",
            f"HEAD is answered otherwise than GET at {_named(differ)}.",
            "Let HEAD be answered as GET is.",
        )


async def _answers(visit: Visit, method: str) -> tuple[dict[str, Answer], dict[str, NoAnswer]]:
    wanted = places(visit)
    found = await asyncio.gather(*(_answer(visit, method, place) for place in wanted))
    pairs = list(zip(wanted, found, strict=True))
    answers = {place: each for place, each in pairs if isinstance(each, Answer)}
    return answers, {place: each for place, each in pairs if isinstance(each, NoAnswer)}


async def _answer(visit: Visit, method: str, place: str) -> Answer | NoAnswer:
    try:
        return await visit.asker.ask(
            method, visit.origin + place, headers={"Accept": "application/json"}
        )
    except NoAnswer as error:
        return error


def _named(places: list[str]) -> str:
    if len(places) <= MOST_NAMED:
        return in_words([shown(each) for each in places])
    more = f"{len(places) - MOST_NAMED} more"
    return in_words([*(shown(each) for each in places[:MOST_NAMED]), more])


def _redirected(where: str) -> Finding:
    return broken(
        "document-redirect",
        f"Clients that look for a document are redirected at {where}, mostly to a page.",
        'Answer there itself; in Django, put path("", include("django_mcp.well_known")) first, and '
        "exempt these paths from logins and from redirects to other names of the site.",
    )


def _a_page(where: str) -> Finding:
    return broken(
        "document-page",
        f"A page answers at {where}, where clients look for a JSON document. They take it for one, "
        "fail, and some show it whole.",
        "Let a 404 be the answer, before any pattern that answers everything; in Django, put "
        'path("", include("django_mcp.well_known")) first.',
    )


def _closed(where: str) -> Finding:
    return broken(
        "document-closed",
        f"A login is asked for at {where}. Whoever is to log in cannot read where.",
        "Let everybody read these documents.",
    )


def _failing(where: str) -> Finding:
    return broken(
        "document-error", f"The server fails at {where}.", "See its log; 404 is what is expected."
    )


def _html(where: str) -> Finding:
    return warning(
        "document-html",
        f"The 404 at {where} is a page. Codex shows people all of it.",
        "Answer there with a short JSON document; in Django, put "
        'path("", include("django_mcp.well_known")) first.',
    )


GROUPS: Final[tuple[Group, ...]] = (
    (lambda answer: 300 <= answer.status < 400, _redirected),
    (lambda answer: answer.status == 200 and not is_document(answer), _a_page),
    (lambda answer: answer.status in (401, 403), _closed),
    (lambda answer: answer.status >= 500, _failing),
    (lambda answer: answer.status == 404 and "html" in answer.media_type, _html),
)
