"""Which articles are about the same thing as a text: word statistics, the same on every database.

The database only narrows the articles down to those that share a word; the ranking is the
cosine of the angle between weighted word counts (tf-idf), with more weight on title and tags.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from example_project.support.models import Article

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TITLE_WEIGHT = 3
TAG_WEIGHT = 3
# Below it the likeness is usually an accident.
WORTH_READING = 0.2
# Enough words to tell subjects apart; each one more makes the query longer.
MAX_WORDS = 24

WORD = re.compile(r"[a-z0-9]{3,}")
STOP_WORDS = frozenset(
    """
    about after again all also and any are because been before but can cannot could did does
    doing don done even every for from get got had has have hello her here him his how into
    its just know last let like made make many may more most much must need new not now off
    one only other our out over please same see she should since some still such sure than
    thank thanks that the their them then there these they thing this those through too try
    under until use used using very via want was way well were what when where which while who
    why will with within without would yet you your
    """.split()  # noqa: SIM905  one word after another reads better than a list of them
)


@dataclass(frozen=True, slots=True)
class Match:
    """An article and how near it is: 0 for nothing in common, 1 for the same words."""

    article: Article
    score: float


def terms(text: str) -> list[str]:
    """The words that carry meaning, without the plural's s."""
    words = WORD.findall(text.lower())
    return [_stem(word) for word in words if word not in STOP_WORDS]


def similar_articles(text: str, *, limit: int) -> list[Match]:
    """The nearest articles, best first."""
    wanted = Counter(terms(text))
    words = [word for word, _ in wanted.most_common(MAX_WORDS)]
    candidates = list(Article.objects.containing_any(words))
    matches = _rank(wanted, candidates)
    return sorted(matches, key=lambda match: (-match.score, match.article.slug))[:limit]


def _rank(wanted: Counter[str], articles: list[Article]) -> Iterable[Match]:
    counts = [_counts(article) for article in articles]
    rarity = _rarity(counts)
    target = _weigh(wanted, rarity)
    for article, count in zip(articles, counts, strict=True):
        score = _cosine(target, _weigh(count, rarity))
        if score > 0:
            yield Match(article=article, score=round(score, 3))


def _counts(article: Article) -> Counter[str]:
    counts = Counter(terms(article.body))
    for text, weight in ((article.title, TITLE_WEIGHT), (article.tags, TAG_WEIGHT)):
        for term in terms(text):
            counts[term] += weight
    return counts


def _rarity(counts: list[Counter[str]]) -> dict[str, float]:
    appearances = Counter(term for count in counts for term in count)
    return {
        term: math.log((1 + len(counts)) / appearance) for term, appearance in appearances.items()
    }


def _weigh(counts: Counter[str], rarity: Mapping[str, float]) -> dict[str, float]:
    # The logarithm keeps a word that is repeated ten times from counting ten times.
    return {
        term: (1 + math.log(count)) * rarity[term]
        for term, count in counts.items()
        if term in rarity
    }


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    product = sum(weight * other[term] for term, weight in one.items() if term in other)
    lengths = math.hypot(*one.values()) * math.hypot(*other.values())
    return product / lengths if lengths else 0.0


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and word[-2] != "s" else word
