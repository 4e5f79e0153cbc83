"""Heads of requests that are too large, sent to a real server: 431, before any key, in little memory."""

import json

import pytest

from dartboard.api.guards import head_limit
from tests.api.small_app import serving, small_app, talk, until

START = b"GET /plain HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = b"POST /write HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
CLOSE = b"Connection: close\r\n\r\n"


@pytest.fixture(scope="module")
def port():
    with serving(small_app()) as port:
        yield port


def status(answer: bytes) -> int:
    return int(answer.split(b" ")[1]) if answer else 0


@pytest.mark.parametrize(
    "pieces",
    [
        [START + b"X-A: ", *[b"a" * 8192] * 8],
        [START, *[b"X-%d: b\r\n" % n for n in range(101)]],
        [START + b"".join(b"X-%d: b\r\n" % n for n in range(200)) + CLOSE],
        [START + b"X-A: " + b"a" * 70_000 + b"\r\n" + CLOSE],
        [b"GET /", *[b"a" * 8192] * 8],
    ],
    ids=["a value without an end", "lines that drip", "many lines", "a long value", "a long address"],
)
def test_heads_that_are_too_large(port, pieces):
    answer = talk(port, *pieces)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ") and b"\r\nconnection: close" in head
    assert b"\r\nx-content-type-options: nosniff" in head
    problem = json.loads(body)
    assert (problem["status"], problem["code"]) == (431, "headers_too_large")
    assert b"aaaa" not in answer and b"X-1" not in answer


def test_what_is_no_http_is_answered_as_before(port):
    assert status(talk(port, b"G ET / HTTP\r\n\r\n")) == 400


def test_what_is_within_the_limits_is_served(port):
    lines = b"".join(b"X-%d: b\r\n" % n for n in range(head_limit.HEAD_LINES - 2))
    assert status(talk(port, START + lines + CLOSE)) == 200
    assert status(talk(port, START + b"X-A: " + b"a" * 60_000 + b"\r\n" + CLOSE)) == 200


def test_limits_are_for_each_request_of_a_connection(port):
    one = START + b"X-A: " + b"a" * 30_000 + b"\r\n\r\n"
    answer = talk(port, one * 5, START + CLOSE)
    assert answer.count(b"HTTP/1.1 200 ") == 6


def test_bodies_are_not_counted_and_trailers_are(port):
    body = json.dumps({"a": "b" * 300_000}).encode()
    chunk = b"%x\r\n" % len(body) + body + b"\r\n0\r\n"
    kind = b"Content-Type: application/json\r\n"
    assert status(talk(port, CHUNKED + kind + CLOSE + chunk + b"\r\n")) == 200
    whole = CHUNKED + kind + b"\r\n" + chunk[:-3]
    answer = talk(port, whole, b"0\r\nX-A: ", *[b"a" * 8192] * 8, pause=0.05)
    assert status(answer) in (0, 431)  # closed, with an answer where none was under way


def test_the_service_goes_on(port):
    for _ in range(20):
        talk(port, START + b"X-A: " + b"a" * 70_000, read=False)
    until(lambda: status(talk(port, START + CLOSE)) == 200)
