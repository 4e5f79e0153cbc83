"""Server-sent events, however the bytes are cut, against another implementation."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import EndpointError
from dartboard.llm.sse_client import event_data

LINES = st.sampled_from(
    [
        "data: one",
        "data:two",
        "data:  three",
        "data",
        "data: ä 😀",
        ": comment",
        "event: x",
        "id: 7",
        "",
        "retry: 5",
    ]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def pieces(body: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(body)) for cut in cuts} | {0, len(body)})
    return [body[start:end] for start, end in pairwise(places)]


@given(st.lists(LINES, max_size=20), ENDS, st.lists(st.integers(0, 300), max_size=6))
def test_cuts_change_nothing_and_another_decoder_agrees(lines, end, cuts):
    decoder = pytest.importorskip("httpx_sse._decoders").SSEDecoder()
    body = "".join(line + end for line in lines)
    found = list(event_data(pieces(body.encode(), cuts)))
    assert found == list(event_data([body.encode()]))
    events = [decoder.decode(line) for line in [*lines, ""]]
    assert found == [one.data for one in events if one is not None and one.data.strip("\n")]


def test_the_end_and_the_beginning_may_be_untidy():
    assert list(event_data([b"\xef\xbb\xbfdata: a\n\ndata: b"])) == ["a", "b"]
    assert list(event_data([b"data: a\r", b"\n\r", b"\ndata: b\r"])) == ["a", "b"]
    assert list(event_data([b"data: \xff\n\n"])) == ["\ufffd"]
    assert list(event_data([])) == []


@pytest.mark.parametrize("body", [b"data: " + b"x" * 200, b"data: x\n" * 40])
def test_events_without_end_are_refused(body):
    with pytest.raises(EndpointError, match="more than 100 characters"):
        list(event_data([body], longest=100))
