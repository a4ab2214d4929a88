"""Static files in a page, and nothing in them that could end the element they are in."""

from __future__ import annotations

import base64
import re

import pytest

from .support import found, html_of, server_with

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
AS_URI = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def page(tag: str) -> str:
    return f"{{% load mcp_apps %}}{tag}"


def test_a_style_sheet_is_written_with_its_pictures(write):
    write(
        {
            "board.html": page('{% mcp_css "support/css/board.css" %}'),
            "support/css/board.css": (
                "a { background: url(../logo.png?v=2) } b { background: url('dot.png') }"
                ' i { background: url("https://cdn.example.com/x.png"), url(#mask) }'
            ),
            "support/logo.png": PNG,
            "support/css/dot.png": PNG,
        }
    )
    assert html_of(server_with()) == (
        f'<style>a {{ background: url("{AS_URI}") }} b {{ background: url("{AS_URI}") }}'
        ' i { background: url("https://cdn.example.com/x.png"), url(#mask) }</style>'
    )


def test_a_picture_is_a_uri(write):
    write({"board.html": page('<img src="{% mcp_data_uri "logo.png" %}">'), "logo.png": PNG})
    assert html_of(server_with()) == f'<img src="{AS_URI}">'


def test_a_script_cannot_end_its_element(write):
    script = "const a = '</script><script>', b = '</SCRIPT>', c = '<!-- <script>';"
    write({"board.html": page('{% mcp_script "board.js" %}'), "board.js": script})
    html = html_of(server_with())
    inside = html.removeprefix("<script>").removesuffix("</script>")
    assert not re.search("</script|<!--", inside, re.IGNORECASE)
    assert inside == (r"const a = '<\/script><script>', b = '<\/SCRIPT>', c = '<\!-- <script>';")


def test_a_style_sheet_cannot_end_its_element(write):
    sheet = "a::after { content: '</style><script>alert(1)</script>' }"
    write({"board.html": page('{% mcp_css "board.css" %}'), "board.css": sheet})
    html = html_of(server_with())
    assert html.count("</style>") == 1
    assert html.endswith("</style>")


@pytest.mark.parametrize(
    ("tag", "files", "complaint"),
    [
        ('{% mcp_css "none.css" %}', {}, "no static file 'none.css'"),
        ('{% mcp_script "none.js" %}', {}, "no static file 'none.js'"),
        ('{% mcp_data_uri "none.png" %}', {}, "no static file 'none.png'"),
        ('{% mcp_data_uri "a.unknown" %}', {"a.unknown": "x"}, "what kind of file"),
        ('{% mcp_css "a.css" %}', {"a.css": '@import "b.css";'}, "imports another one"),
        ('{% mcp_css "a.css" %}', {"a.css": "a { b: url(c.png) }"}, "no static file 'c.png'"),
        ('{% mcp_css "a.css" %}', {"a.css": "a { b: url(c.woff2) }"}, "no font"),
        ('{% mcp_script "a.js" %}', {"a.js": b"\xff\xfe"}, "no text in UTF-8"),
    ],
)
def test_what_cannot_be_written_into_a_page_is_an_error(write, tag, files, complaint):
    write({"board.html": page(tag), **files})
    (error,) = found(server_with())
    assert error.id == "django_mcp.E070"
    assert complaint in error.msg
