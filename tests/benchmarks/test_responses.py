from __future__ import annotations

import pytest

from benchmarks.responses import Garbled, Reader, Response, events

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def read(*pieces: bytes) -> Response | None:
    reader = Reader()
    found = [reader.feed(each) for each in pieces]
    assert found[:-1] == [None] * (len(pieces) - 1)
    return found[-1]


def bytewise(data: bytes) -> list[bytes]:
    return [data[place : place + 1] for place in range(len(data))]


@pytest.mark.parametrize(
    "data",
    [
        HEAD + b'Content-Length: 7\r\n\r\n{"a":1}',
        HEAD + b'Transfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n4;x=y\r\n":1}\r\n0\r\n\r\n',
    ],
    ids=["length", "chunks"],
)
def test_a_body_is_complete_with_its_last_byte(data: bytes):
    response = read(*bytewise(data))
    assert response is not None
    assert response.body == b'{"a":1}'
    assert response.messages() == [{"a": 1}]
    assert not response.head.closes


def test_one_connection_has_many_responses():
    reader = Reader()
    for number in range(3):
        response = reader.feed(HEAD + b"Content-Length: 1\r\n\r\n%d" % number)
        assert response is not None
        assert response.messages() == [number]


def test_a_body_without_a_length_ends_with_its_connection():
    reader = Reader()
    assert reader.feed(HEAD + b"\r\n{}") is None
    response = reader.close()
    assert response is not None
    assert response.body == b"{}"
    assert response.head.closes


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200",
        HEAD + b"Content-Length: 7\r\n\r\n{",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\n{}",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    ],
    ids=["head", "length", "chunk", "last chunk"],
)
def test_a_connection_that_ends_within_a_response_is_an_error(data: bytes):
    reader = Reader()
    assert reader.feed(data) is None
    with pytest.raises(Garbled):
        reader.close()


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"hello\r\n\r\n",
        HEAD + b"Content-Length: 1\r\n\r\n12",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nno\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n123456\r\n0\r\n\r\n",
    ],
    ids=["version", "no HTTP", "too long", "no size", "long chunk"],
)
def test_what_cannot_be_understood_is_an_error(data: bytes):
    with pytest.raises(Garbled):
        Reader().feed(data)


def test_events_have_their_data_whatever_the_ends_of_lines_and_fields_beside():
    body = b": comment\n\nid: 1\ndata: 1\n\nevent: message\r\ndata: 2\r\ndata: 3\r\n\r\n"
    assert list(events(body)) == [b"1", b"2\n3"]


def test_an_event_stream_that_ends_within_an_event_is_an_error():
    with pytest.raises(Garbled):
        list(events(b"data: 1\n\ndata: 2\n"))
