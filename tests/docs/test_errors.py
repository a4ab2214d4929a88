"""Every row of the tables of errors is provoked, and answered as its table says."""

from __future__ import annotations

import pytest
import rest_framework.exceptions  # noqa: F401 - its exceptions are told where it is imported

from django_mcp.server import exception_table
from django_mcp.server.errors import ToolTimedOut
from django_mcp.testing import MCPClient

from .provocations import MODERN, PROVOCATIONS, RESULTS, WITHOUT_ID, server
from .tables import code, rows, section

PAGE = "docs/reference/errors.md"

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("heading", PROVOCATIONS)
def test_every_row_is_provoked(heading: str):
    assert {row[0] for row in rows(section(PAGE, heading))} == set(PROVOCATIONS[heading])


CASES = [
    pytest.param(heading, when, id=f"{heading.strip('# ')}: {when}")
    for heading, provocations in PROVOCATIONS.items()
    for when in provocations
]


@pytest.mark.parametrize(("heading", "when"), CASES)
def test_the_answer_is_as_documented(heading: str, when: str):
    table = {row[0]: row[1:] for row in rows(section(PAGE, heading))}
    client = MCPClient(server, revision=MODERN if MODERN in heading else "2025-11-25")
    answer = PROVOCATIONS[heading][when](client)
    assert answer.error is not None, answer
    assert [str(answer.http.status_code), str(answer.error["code"])] == [
        code(cell) for cell in table[when]
    ]
    anonymous = heading == "## Before the message is read" or when in WITHOUT_ID
    assert (answer.message["id"] is None) == anonymous


def test_in_front_of_the_view_middleware_answers_a_wrong_host(client, settings):
    settings.MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
    answer = client.post("/mcp", headers={"host": "elsewhere.example"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "text/html; charset=utf-8")


def test_in_front_of_the_view_middleware_redirects_to_https(client, settings):
    settings.MIDDLEWARE = ["django.middleware.security.SecurityMiddleware"]
    settings.SECURE_SSL_REDIRECT = True
    answer = client.post("/mcp")
    assert (answer.status_code, answer["Location"]) == (301, "https://testserver/mcp")


def test_every_result_that_reports_an_error_is_documented():
    table = rows(section(PAGE, "## Results that report an error"))
    assert [row[0] for row in table] == list(RESULTS)


@pytest.mark.parametrize("when", RESULTS)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_what_a_model_can_put_right_is_a_result(when: str, revision: str):
    RESULTS[when](MCPClient(server, revision=revision)).assert_failed()


def test_statuses_without_an_error():
    client = MCPClient(server)
    given = {
        200: client.request("tools/list").http,
        202: client.send({"jsonrpc": "2.0", "method": "notifications/initialized"}).http,
        204: client.close().http,
    }
    assert {status: response.status_code for status, response in given.items()} == {
        int(row[0]): int(row[0]) for row in rows(section(PAGE, "## Statuses without an error"))
    }
    assert client.http("OPTIONS").status_code == 204


def test_every_exception_that_is_told_is_documented():
    first = " ".join(row[0] for row in rows(section(PAGE, "## Exceptions")))
    internal = {ToolTimedOut}
    for kind in exception_table.TABLE.keys() - internal:
        assert f"`{kind.__name__}`" in first, kind
    of_rest_framework = exception_table.rows().keys() - exception_table.TABLE.keys()
    assert len(of_rest_framework) == 5
    for kind in of_rest_framework:
        assert f"`{kind.__name__}`" in first, kind
