from __future__ import annotations

import pytest

from example_project.support.models import Article
from example_project.support.similarity import similar_articles, terms

pytestmark = pytest.mark.django_db


def slugs(text: str, *, limit: int = 5) -> list[str]:
    return [match.article.slug for match in similar_articles(text, limit=limit)]


def test_terms_drop_what_carries_no_meaning():
    assert terms("The invoices, and THE Parcels of us!") == ["invoice", "parcel"]


@pytest.mark.parametrize(
    ("question", "slug"),
    [
        ("Why did you charge me twice?", "why-was-i-charged-twice"),
        ("my webhook signatures never match", "verify-webhook-signatures"),
        ("429 too many requests, rate limit", "api-rate-limits"),
        ("lost my phone with the authenticator", "two-factor-authentication"),
        ("the parcel was damaged", "damaged-or-wrong-delivery"),
        ("scanner types wrong characters", "barcode-scanner-layout"),
    ],
)
def test_best_article(question, slug):
    assert slugs(question)[0] == slug


def test_nothing_in_common():
    assert slugs("xyzzy plugh") == []
    assert slugs("the and of") == []
    assert slugs("") == []


def test_scores_fall_and_stay_within_bounds():
    scores = [match.score for match in similar_articles("email invoice refund order", limit=20)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert len(scores) > 5


def test_no_more_articles_are_found_than_asked_for():
    assert len(slugs("order", limit=2)) == 2


def test_an_article_is_most_like_itself():
    article = Article.objects.get(slug="api-pagination")
    best = similar_articles(f"{article.title} {article.body}", limit=1)[0]
    assert best.article == article
    assert best.score > 0.5


def test_one_query(django_assert_num_queries):
    with django_assert_num_queries(1):
        similar_articles("invoice refund parcel", limit=5)
