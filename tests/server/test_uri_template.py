"""URI templates (RFC 6570), read backwards."""

from __future__ import annotations

import time

import pytest

from django_mcp.protocol.uri_template import MAX_LENGTH, InvalidURITemplate, URITemplate

MATCHES = [
    # simple expansion
    ("note://{id}", "note://5", {"id": "5"}),
    ("note://{id}", "note://a.b-c_d~e", {"id": "a.b-c_d~e"}),
    ("note://{id}", "note://", None),
    ("note://{id}", "note://a/b", None),
    ("note://{id}", "note://a?b=c", None),
    ("note://{id}", "note://a#b", None),
    ("note://{id}", "notes://5", None),
    ("note://{id}", "xnote://5", None),
    ("note://{id}", "note://5/", None),
    ("note://{id}/", "note://5/", {"id": "5"}),
    ("note://{id}", "NOTE://5", None),
    ("note://{a}/{b}", "note://1/2", {"a": "1", "b": "2"}),
    ("note://{a}-{b}", "note://1-2", {"a": "1", "b": "2"}),
    ("note://{a}-{b}", "note://1-2-3", {"a": "1", "b": "2-3"}),
    ("note://{a}-{b}-{c}", "note://1-2-3", {"a": "1", "b": "2", "c": "3"}),
    ("note://{a}-{b}-{c}", "note://1--2-3", {"a": "1", "b": "-2", "c": "3"}),
    ("note://{a}-{b}", "note://-1-2", {"a": "-1", "b": "2"}),
    ("note://{a}-{b}.txt", "note://1.txt-2.txt.txt", {"a": "1.txt", "b": "2.txt"}),
    ("note://{a}-x{/b}", "note://p-xq-x/7", {"a": "p-xq", "b": "7"}),
    ("note://{a}-{+b}", "note://1-2-3/4", {"a": "1", "b": "2-3/4"}),
    ("note://{+a}-{+b}", "note://1/2-3-4", {"a": "1/2", "b": "3-4"}),
    ("note://{a,b}", "note://1,2", {"a": "1", "b": "2"}),
    ("note://{a,b}", "note://1", None),
    ("x://{year}/{month}/days", "x://2026/07/days", {"year": "2026", "month": "07"}),
    ("file:///{name}.txt", "file:///a.b.txt", {"name": "a.b"}),
    ("file:///{name}.txt", "file:///atxt", None),
    ("x://y.z/{a}", "x://yzz/1", None),
    # percent-encoding
    ("note://{id}", "note://a%20b", {"id": "a b"}),
    ("note://{id}", "note://a%2Fb%3Fc%23d", {"id": "a/b?c#d"}),
    ("note://{id}", "note://gr%C3%B6%C3%9Fe", {"id": "größe"}),
    ("note://{id}", "note://%E4%BD%A0", {"id": "你"}),
    ("note://{id}", "note://100%25", {"id": "100%"}),
    ("note://{id}", "note://a%", {"id": "a%"}),
    ("note://{id}", "note://a+b", {"id": "a+b"}),
    ("note://{id}", "note://%00", {"id": "\x00"}),
    ("note://{a,b}", "note://1%2C2,3", {"a": "1,2", "b": "3"}),
    ("note://{id}", "note://%FF", {"id": "\ufffd"}),
    # what should have been encoded, and cannot be taken for a delimiter
    ("note://{id}", "note://größe", {"id": "größe"}),
    ("user://{mail}", "user://bob@example.com", {"mail": "bob@example.com"}),
    ("note://{id}", "note://a b", {"id": "a b"}),
    ("note://{id}", "note://a:b", {"id": "a:b"}),
    # reserved expansion
    ("file:///{+path}", "file:///a/b/c.txt", {"path": "a/b/c.txt"}),
    ("file:///{+path}", "file:///a?b=c#d", {"path": "a?b=c#d"}),
    ("file:///{+path}", "file:///a%20b", {"path": "a b"}),
    ("file:///{+path}", "file:///", None),
    ("file:///{+path}/{name}", "file:///a/b/c", {"path": "a/b", "name": "c"}),
    ("file:///{+path}.{ext}", "file:///a/b.c.txt", {"path": "a/b", "ext": "c.txt"}),
    # fragment
    ("doc://{id}{#part}", "doc://1#two/three", {"id": "1", "part": "two/three"}),
    ("doc://{id}{#part}", "doc://1", {"id": "1"}),
    ("doc://{id}{#part}", "doc://1#", None),
    # label
    ("file:///{name}{.ext}", "file:///a.txt", {"name": "a", "ext": "txt"}),
    ("file:///{name}{.ext}", "file:///a", {"name": "a"}),
    ("file:///{name}{.ext}", "file:///a.tar.gz", {"name": "a.tar", "ext": "gz"}),
    ("file:///{+path}{.ext}", "file:///a/b.txt", {"path": "a/b", "ext": "txt"}),
    ("x://www{.a,b}", "x://www.example.com", {"a": "example", "b": "com"}),
    ("x://www{.a,b}", "x://www.example", {"a": "example"}),
    # path segments
    ("x://y{/a}", "x://y/1", {"a": "1"}),
    ("x://y{/a}", "x://y", {}),
    ("x://y{/a}", "x://y/", None),
    ("x://y{/a,b}", "x://y/1/2", {"a": "1", "b": "2"}),
    ("x://y{/a,b}", "x://y/1", {"a": "1"}),
    ("x://y{/a,b}/z", "x://y/1/2/z", {"a": "1", "b": "2"}),
    ("x://y{/a}", "x://y/1/2", None),
    # query
    ("x://y{?q}", "x://y?q=1", {"q": "1"}),
    ("x://y{?q}", "x://y", {}),
    ("x://y{?q}", "x://y?q=", {}),
    ("x://y{?q}", "x://y?q=a%26b%3Dc", {"q": "a&b=c"}),
    ("x://y{?q}", "x://y?r=1", None),
    ("x://y{?q}", "x://y?q=1&r=2", None),
    ("x://y{?q,limit}", "x://y?q=1&limit=2", {"q": "1", "limit": "2"}),
    ("x://y{?q,limit}", "x://y?limit=2", {"limit": "2"}),
    ("x://y{?q,limit}", "x://y?q=1", {"q": "1"}),
    ("x://y?fixed=1{&q}", "x://y?fixed=1&q=2", {"q": "2"}),
    ("x://y?fixed=1{&q}", "x://y?fixed=1", {}),
    ("x://{id}{?q}", "x://5?q=a/b", {"id": "5", "q": "a/b"}),
    # none
    ("note://all", "note://all", {}),
    ("note://all", "note://all/", None),
    ("note://a.b", "note://aXb", None),
    ("urn:isbn:{number}", "urn:isbn:123", {"number": "123"}),
]


@pytest.mark.parametrize(("template", "uri", "values"), MATCHES)
def test_a_uri_gives_the_values_of_the_template_it_matches(template, uri, values):
    assert URITemplate(template).match(uri) == values


def test_variables_are_in_the_order_of_the_template():
    assert URITemplate("x://{b}/{+a}{?d,c}").variables == ("b", "a", "d", "c")
    assert URITemplate("x://y").variables == ()


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("notes", "begin with a scheme, for example notes://"),
        ("/notes/{id}", "begin with a scheme"),
        ("{scheme}://x", "begin with a scheme"),
        ("", "begin with a scheme"),
        ("x://{id", "braces do not match"),
        ("x://id}", "braces do not match"),
        ("x://{a{b}}", "braces do not match"),
        ("x://{}", "is not a plain variable"),
        ("x://{a,}", "is not a plain variable"),
        ("x://{a*}", r"modifiers \* and :n are not supported"),
        ("x://{a:3}", "modifiers"),
        ("x://{?list*}", "modifiers"),
        ("x://{=a}", "is not a plain variable"),
        ("x://{;a}", "is not a plain variable"),
        ("x://{a b}", "is not a plain variable"),
        ("x://{1a}", "is not a plain variable"),
        ("x://{größe}", "is not a plain variable"),
        ("x://{a}/{a}", "the variable 'a' stands twice"),
        ("x://{a,a}", "the variable 'a' stands twice"),
        ("x://{a}{b}", "nothing stands between {a} and {b}"),
        ("x://{a}{+b}", "nothing stands between"),
        ("x://{?a}{b}", "nothing stands between"),
        ("x://{+a,b,c}/end", r"may contain the comma .* for example {\+a}/{\+b}/{\+c}"),
        ("x://y{#a,b}", r"may contain the comma .* take them as one, for example {#a}"),
    ],
)
def test_what_cannot_be_matched_is_refused(template, reason):
    with pytest.raises(InvalidURITemplate, match=reason):
        URITemplate(template)


@pytest.mark.parametrize(
    ("template", "character"),
    [
        ("x://{year}-{month}-{day}-{hour}.json", "-"),
        ("x://{+a}/{+b}/{+c}/{+d}!", "/"),
        ("x://{a,b}-{c}-{+d}-{+e}!", "-"),
        ("x://{+a}.{b}!", "."),
        ("x://{+a}{.b,c,d}!", "."),
        ("x://{+a}{/b,c,d}!", "/"),
        ("x://y{?a,b,c}{&d}!", "&a="),
        ("x://{+path}{?q}!", "?q="),
        ("x://{+path}{?q,r}{&s,t}!", "?q=&s="),
        ("x://{+a}-{+b}-{+c}-{+d}-{+e}-{+f}-{+g}-{+h}!", "-"),
        ("x://{a}", "%"),
    ],
)
def test_a_hostile_uri_is_decided_fast(template, character):
    matcher = URITemplate(template)
    hostile = ("x://y" + character * MAX_LENGTH)[: MAX_LENGTH - 3] + "/\n/"
    begun = time.process_time()
    for _ in range(100):
        assert matcher.match(hostile) is None
    assert time.process_time() - begun < 0.5


def test_a_uri_beyond_all_measure_matches_nothing():
    assert URITemplate("x://{a}").match("x://" + "a" * MAX_LENGTH) is None
    assert URITemplate("x://{a}").match("x://" + "a" * (MAX_LENGTH - 4)) is not None
