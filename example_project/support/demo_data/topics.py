"""What customers write about: one TOML file for each topic in `topics/`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TOPICS = Path(__file__).parent / "topics"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleText:
    """A page of the knowledge base."""

    slug: str
    title: str
    tags: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What an agent asks back, and what the customer says to that."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One problem that customers have, and how it is solved."""

    subjects: list[str]
    problem: str
    reply: str
    note: str
    resolution: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A subject with its scenarios, and what may be said in any of them.

    Sentences have gaps like {order}; see `vocabulary.gap_values`.
    """

    name: str
    weight: int
    details: list[str]
    inquiries: list[Inquiry]
    scenarios: list[Scenario]
    articles: list[ArticleText]


@cache
def topics() -> list[Topic]:
    """All of them, in the order of their names."""
    return [_load(path) for path in sorted(TOPICS.glob("*.toml"))]


def _load(path: Path) -> Topic:
    fields: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    articles = [ArticleText(**article) for article in fields.pop("articles")]
    scenarios = [Scenario(**scenario) for scenario in fields.pop("scenarios")]
    inquiries = [Inquiry(**inquiry) for inquiry in fields.pop("inquiries")]
    return Topic(
        name=path.stem, articles=articles, scenarios=scenarios, inquiries=inquiries, **fields
    )
