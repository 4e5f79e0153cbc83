"""Events of work in a thread: silence is bridged, errors come in their place, a broken wire ends the work."""

import asyncio
import threading

import pytest

from dartboard.api import events
from dartboard.api.errors import NotFound
from dartboard.api.events import event, streamed
from dartboard.errors import StoreUnavailableError
from tests.waiting import eventually

SCOPE = {"type": "http", "state": {"request_id": "abc"}}


def sent_by(start, *, break_after=None, messages=None):
    """What a stream sends, and the exception that it ends with."""
    messages = [] if messages is None else messages

    async def send(message):
        messages.append(message)
        if len(messages) == break_after:
            raise OSError("the wire broke")

    async def run():
        response = await streamed(start, SCOPE)
        await response({**SCOPE, "asgi": {"spec_version": "2.4"}}, None, send)

    try:
        asyncio.run(run())
    except Exception as error:  # noqa: BLE001 - it is what the test looks at
        return messages, error
    return messages, None


def body(messages):
    return b"".join(message.get("body", b"") for message in messages)


def test_events_then_the_end():
    async def work(tell):
        await asyncio.to_thread(tell, "text", {"text": "ä\n"})
        await asyncio.to_thread(tell, "answer", {})

    messages, error = sent_by(work)
    assert error is None
    assert body(messages) == event("text", {"text": "ä\n"}) + event("answer", {})
    assert [message.get("more_body") for message in messages] == [None, True, True, False]
    headers = dict(messages[0]["headers"])
    assert headers[b"content-type"].startswith(b"text/event-stream") and b"content-length" not in headers


def test_silence_is_bridged(monkeypatch):
    monkeypatch.setattr(events, "SILENCE", 0.02)

    messages = []

    async def work(tell):
        tell("text", {})
        await eventually(lambda: b": still there\n\n" in body(messages))
        tell("answer", {})

    _, error = sent_by(work, messages=messages)
    assert error is None and b": still there\n\n" in body(messages)
    assert body(messages).endswith(event("answer", {}))


@pytest.mark.parametrize(
    ("failure", "code", "raised"),
    [
        (NotFound("no such thing"), b'"code":"not_found"', False),
        (StoreUnavailableError("gone"), b'"code":"store_unavailable"', False),
        (ZeroDivisionError("hidden words"), b'"code":"internal"', True),
    ],
)
def test_a_failure_after_the_first_event_is_the_last_event(failure, code, raised):
    async def work(tell):
        tell("text", {})
        await asyncio.sleep(0)
        raise failure

    messages, error = sent_by(work)
    assert b"event: error" in body(messages) and code in body(messages) and b"hidden" not in body(messages)
    assert b'"request_id":"abc"' in body(messages)
    assert (error is failure) == raised


def test_a_failure_before_the_first_event_is_an_answer_of_its_own():
    async def work(tell):
        raise NotFound("no such thing")

    messages, error = sent_by(work)
    assert messages == [] and isinstance(error, NotFound)


def test_a_broken_wire_ends_the_work():
    ended = threading.Event()

    async def work(tell):
        tell("text", {})
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    _, error = sent_by(work, break_after=2)
    assert error is not None and ended.is_set()
