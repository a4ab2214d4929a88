"""The knowledge base: pages of it, and the form that adds to it."""

from __future__ import annotations

import pytest

from example_project.support.models import Article

from .test_tools import data

pytestmark = pytest.mark.django_db

NEW = {"slug": "zebra-crossing", "title": "Zebras in parcels", "body": "# Zebras\n\nNever."}


def test_articles_are_listed_by_title_page_by_page(as_customer):
    Article.objects.all().delete()
    for number in range(25):
        Article.objects.create(slug=f"a-{number}", title=f"Article {number:02}", body="Long.")
    first = data(as_customer.tool("list_articles"))
    assert [each["title"] for each in first["items"]] == [f"Article {n:02}" for n in range(20)]
    assert [*first["items"][0]] == ["slug", "title", "updated"]
    rest = data(as_customer.tool("list_articles", next=first["next"]))
    assert [each["slug"] for each in rest["items"]] == [f"a-{n}" for n in range(20, 25)]


def test_agents_write_articles_by_the_form_of_the_desk(as_agent):
    written = data(as_agent.tool("write_article", **NEW, tags="zebra, parcel"))
    article = Article.objects.get(slug=NEW["slug"])
    assert written == {"id": article.pk, "text": "Zebras in parcels"}
    assert article.tag_list == ["zebra", "parcel"]


def test_what_is_wrong_with_an_article_is_told_by_field(as_agent):
    wrong = {**NEW, "slug": "zebra crossing", "body": "Write to ada@example.com"}
    answer = as_agent.tool("write_article", **wrong).assert_failed("body: No addresses, please")
    assert answer.text.startswith("slug: Enter a valid")
    assert [*answer.result["_meta"]["django-mcp/errors"]] == ["slug", "body"]
    assert not Article.objects.filter(title=NEW["title"]).exists()


def test_customers_write_none(as_customer):
    as_customer.tool("write_article", **NEW).assert_error(-32602, "Unknown tool: write_article")
