"""Streaming models over real sockets: what they send, what they make of faults, how they are left."""

import itertools
import json
import logging
import shutil
import ssl
import subprocess
import threading
import time

import pytest

from dartboard.answering import AnswerError, answer_model
from dartboard.deadline import deadline
from dartboard.errors import ConfigError, DeadlineError
from dartboard.llm.gemini import GeminiChat
from dartboard.llm.openai import OpenAIChat
from tests.llm.chat_server import (
    QUICK,
    SSE,
    ChatServer,
    Waiting,
    cut,
    event,
    gemini_events,
    openai_events,
    streamed,
)
from tests.waiting import PATIENCE

JSON = {"content-type": "application/json"}
SECRET = "sk-secret-key"
REFUSED = (401, b'{"error": "bad key sk-secret-key"}', {})


def openai(server, **options):
    return OpenAIChat("m", f"{server.url}/v1", SECRET, **({"patience": QUICK} | options))


def gemini(server, **options):
    return GeminiChat("g", SECRET, base_url=server.url, **({"patience": QUICK} | options))


def text_of(model, prompt="Why?", system=""):
    return "".join(piece.text for piece in model.stream(prompt, system=system))


def error_of(server, make=openai, **options):
    with pytest.raises(AnswerError) as caught:
        text_of(make(server, **options))
    assert SECRET not in str(caught.value)
    return caught.value


def test_openai_sends_and_reads():
    with ChatServer(streamed(openai_events("One ", "two ", "ä😀 [1]."))) as server:
        model = openai(server)
        pieces = list(model.stream("Why?", system="You are."))
        request = server.requests[0]
    assert "".join(piece.text for piece in pieces) == "One two ä😀 [1]."
    assert (pieces[0].text, [piece.finish for piece in pieces if piece.finish]) == ("", ["stop"])
    assert (pieces[-1].input_tokens, pieces[-1].output_tokens) == (100, 20)
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    body = request.json
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert body["messages"] == [
        {"role": "system", "content": "You are."},
        {"role": "user", "content": "Why?"},
    ]
    assert "response_format" not in body and body["max_tokens"] > 0
    assert (model.name, SECRET in repr(model)) == ("openai:m", False)


def test_gemini_sends_and_reads():
    with ChatServer(streamed(gemini_events("One ", "two.", thought="hmm"))) as server:
        pieces = list(gemini(server).stream("Why?", system="You are."))
        request = server.requests[0]
    assert "".join(piece.text for piece in pieces) == "One two."
    assert pieces[-1].finish == "stop"
    assert (pieces[-1].input_tokens, pieces[-1].output_tokens) == (90, 42)
    assert request.path == "/models/g:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == SECRET
    assert request.json["systemInstruction"] == {"parts": [{"text": "You are."}]}


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_other_ends_are_told(finish):
    with ChatServer(streamed(openai_events("One", finish=finish))) as server:
        assert [piece.finish for piece in openai(server).stream("Why?") if piece.finish] == [finish]


@pytest.mark.parametrize(
    ("last", "finish"),
    [
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "length"),
        ({"candidates": [{"finishReason": "SAFETY"}]}, "safety"),
        ({"promptFeedback": {"blockReason": "OTHER"}}, "blocked: OTHER"),
    ],
)
def test_geminis_ends_are_told(last, finish):
    with ChatServer(streamed([event(last)])) as server:
        assert [piece.finish for piece in gemini(server).stream("Why?") if piece.finish] == [finish]


def test_an_endpoint_that_does_not_stream_is_read_all_the_same():
    whole = {
        "choices": [{"message": {"content": "One."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5},
    }
    reply = (200, json.dumps(whole).encode(), {"content-type": "application/json; charset=utf-8"})
    with ChatServer(reply) as server:
        last = list(openai(server).stream("Why?"))[-1]
    assert (last.text, last.finish, last.input_tokens, last.output_tokens) == ("One.", "stop", 5, None)
    empty = json.dumps({"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]})
    with ChatServer((200, empty.encode(), {"content-type": "application/json"})) as server:
        assert "content_filter" in list(openai(server).stream("Why?"))[-1].finish


def test_an_endpoint_that_always_streams_is_read_where_a_whole_answer_is_wanted():
    with ChatServer(streamed(openai_events("One ", "two."))) as server:
        answer = openai(server).complete("Why?")
    assert (answer.text, answer.trouble) == ("One two.", "")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (100, 20)


def test_untidy_streams_are_read():
    odd = [
        b": hello\n\n",
        event({"choices": None}),
        event({"choices": [7]}),
        event({"choices": [{"delta": None, "finish_reason": 3}]}),
        event({"choices": [{"delta": {"content": None, "refusal": "No."}}]}),
        event({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": "many"}),
    ]
    with ChatServer((200, iter(odd), {"content-type": "text/plain"})) as server:
        assert text_of(openai(server)) == "No."


def test_what_breaks_after_the_end_does_not_matter():
    with ChatServer(cut(openai_events("One.", done=False, usage=None))) as server:
        assert text_of(openai(server)) == "One."


@pytest.mark.parametrize(
    "trouble",
    [
        (429, b"slow down", {"retry-after": "0"}),
        (429, b'{"error": {"details": [{"retryDelay": "0.001s"}]}}', {}),
        (500, b"down", {}),
        (503, b"", {}),
        None,
        (200, b"", SSE),
        (200, b"<html>", {"content-type": "application/json"}),
        streamed([event("{ no JSON")]),
        streamed([event({"error": {"message": "overloaded", "code": 529}})]),
        streamed([event({"error": "out of memory"})]),
        streamed([event({"choices": [{"delta": {"role": "assistant"}}]})]),
        cut([event({"choices": []})]),
    ],
    ids=lambda reply: "drop" if reply is None else str(reply[0]),
)
def test_trouble_before_the_first_word_is_tried_again(trouble, caplog):
    caplog.set_level(logging.INFO)
    with ChatServer(trouble, streamed(openai_events("One."))) as server:
        assert text_of(openai(server), prompt="zebra9marker") == "One."
        assert len(server.requests) == 2
    assert "asking again" in caplog.text
    assert "zebra9marker" not in caplog.text and "slow down" not in caplog.text


@pytest.mark.parametrize(
    ("reply", "kind", "said", "asked"),
    [
        (REFUSED, "refused", "HTTP 401", 1),
        ((404, b"no such model", {}), "refused", "no such model", 1),
        ((400, b"too long", {}), "rejected", "too long", 1),
        ((307, b"", {"location": "http://elsewhere"}), "rejected", "HTTP 307", 1),
        ((429, b"slow down", {"retry-after": "0"}), "limited", "failed 3 times", 3),
        ((429, b"tomorrow", {"retry-after": "86400"}), "limited", "asks to wait 86,400 s", 1),
        ((503, b"down", {}), "failed", "HTTP 503 down", 3),
        (None, "broken", "failed 3 times", 3),
        (streamed([event({"error": {"message": "bad key", "code": 401}})]), "refused", "bad key", 1),
        ((200, b"x" * 17_000_000, {"content-type": "application/json"}), "rejected", "more than 16 MB", 1),
        ((200, b"data: " + b"x" * 17_000_000, SSE), "rejected", "more than 16 MB", 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_refusal_is_a_clear_error(reply, kind, said, asked):
    def again(request):
        return (reply[0], reply[1], reply[2]) if reply is not None and isinstance(reply[1], bytes) else reply

    with ChatServer(again) as server:
        error = error_of(server)
        assert (error.kind, len(server.requests)) == (kind, asked)
    assert said in str(error) and server.url in str(error)


def test_geminis_wrong_key_is_a_refused_one():
    with ChatServer((400, b'{"error": {"message": "API key not valid."}}', {})) as server:
        assert error_of(server, gemini).kind == "refused"


def test_nobody_there():
    with ChatServer(REFUSED) as server:
        pass
    error = error_of(server)
    assert (error.kind, error.status) == ("unreachable", 0)
    assert "no connection" in str(error)


@pytest.mark.parametrize(
    "broken",
    [
        cut(openai_events("One ", finish=None, done=False, usage=None)),
        streamed(openai_events("One ", finish=None, done=False, usage=None)),
        streamed([*openai_events("One ", finish=None, done=False), event("{ half")]),
        streamed([*openai_events("One ", finish=None, done=False), event({"error": {"message": "died"}})]),
    ],
    ids=["connection", "end", "event", "error"],
)
def test_a_cut_in_mid_answer_is_an_error_and_not_tried_again(broken):
    got = []
    with ChatServer(broken) as server:
        with pytest.raises(AnswerError, match="broke off in the middle") as caught:
            got.extend(piece.text for piece in openai(server).stream("Why?"))
        assert len(server.requests) == 1
    assert ("".join(got), caught.value.kind) == ("One ", "cut")


def test_silence_is_an_error():
    quiet = Waiting("One ", aloud=False)
    patience = patient(3)  # long enough for the first piece on a busy machine
    with ChatServer(quiet) as server:
        error = error_of(server, patience=patience)
        quiet.go.set()
    assert error.kind == "cut" and "nothing of the answer came for 3 s" in str(error)
    never = Waiting(head=False)
    with ChatServer(never) as server:
        error = error_of(server, patience=patient(0.2))
        never.go.set()
    assert error.kind == "silent"


def patient(silence, attempts=1):
    return QUICK.__class__(timeout=silence, attempts=attempts, first_wait=0.001, longest_wait=0.01)


@pytest.mark.parametrize(("pieces", "kind", "asked"), [((), "silent", 2), (("One ",), "cut", 1)])
def test_comments_are_no_sign_of_life(pieces, kind, asked):
    waiting = Waiting(*pieces)
    with ChatServer(waiting) as server:
        error = error_of(server, patience=patient(3, attempts=2))
        assert (error.kind, len(server.requests)) == (kind, asked)
        assert waiting.left.wait(60)
        waiting.go.set()
    assert "nothing of the answer came for 3 s" in str(error)


def endless(data, pause=0.02):
    """The same event for ever."""

    def reply(request):
        return 200, (time.sleep(pause) or event(data) for _ in range(3000)), SSE  # timing: slow, always

    return reply


HM = {"text": "hm", "thought": True}
EMPTY = {"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}


@pytest.mark.parametrize(
    ("make", "thought", "end"),
    [
        (openai, {"choices": [{"delta": {"reasoning_content": "hm"}}]}, openai_events("One.")),
        (gemini, {"candidates": [{"content": {"parts": [HM]}}]}, gemini_events("One.")),
    ],
)
def test_thoughts_are_a_sign_of_life(make, thought, end):
    def parts():
        for _ in range(5):
            time.sleep(0.8)  # timing: far below the silence that is allowed, above it in all
            yield event(thought)
        yield from end

    with ChatServer((200, parts(), SSE)) as server:
        assert text_of(make(server, patience=patient(3))) == "One."


def test_an_answer_has_a_longest_time():
    with ChatServer(endless({"choices": [{"delta": {"content": "and "}}]})) as server:
        model = openai(server)
        model.longest = 0.3
        with pytest.raises(AnswerError, match=r"took too long: .* still not done after 0\.3 s") as caught:
            text_of(model)
        assert (caught.value.kind, len(server.requests)) == ("cut", 1)
    with ChatServer(endless(EMPTY)) as server:
        model = openai(server, patience=patient(0.2, attempts=50))
        model.longest = 0.5
        with pytest.raises(AnswerError, match=r"has not begun after 0\.5 s") as caught:
            text_of(model)
        assert caught.value.kind == "silent" and len(server.requests) <= 3
    with pytest.raises(ConfigError, match="positive number of seconds"):
        answer_model("openai:m@http://127.0.0.1:9", timeout=0)


@pytest.mark.parametrize("waiting", [Waiting("One "), Waiting("One ", aloud=False), Waiting(head=False)])
def test_whoever_waits_can_leave_at_once(waiting):
    cancelled = threading.Event()
    with ChatServer(waiting) as server:
        threading.Thread(target=lambda: (waiting.began.wait(60), cancelled.set()), daemon=True).start()
        with pytest.raises(DeadlineError, match="cancelled"), deadline(PATIENCE, cancelled=cancelled):
            text_of(openai(server))
        assert not waiting.ran_out, "it stayed as long as the server let it wait"
        if waiting.head and waiting.aloud:
            assert waiting.left.wait(60)  # the endpoint noticed
        waiting.go.set()


def test_closing_the_iterator_hangs_up():
    waiting = Waiting("One ", "two ")
    with ChatServer(waiting) as server:
        stream = openai(server).stream("Why?")
        assert any(piece.text == "One " for piece in stream)
        stream.close()
        assert waiting.left.wait(60)
        waiting.go.set()


def test_a_pause_that_is_asked_for_can_be_left():
    limited = ChatServer((429, b"", {"retry-after": "1"}))
    with limited as server, pytest.raises(DeadlineError), deadline(0.2):  # timing: has to run out
        text_of(openai(server))


@pytest.mark.parametrize(
    ("complaint", "left_out"),
    [
        (b"stream_options is not supported", {"stream_options"}),
        (b"unsupported parameter: temperature", {"temperature"}),
        (b"use max_completion_tokens", {"max_tokens"}),
    ],
)
def test_what_an_endpoint_does_not_understand_is_left_out(complaint, left_out):
    with ChatServer((400, complaint, {}), streamed(openai_events("One."))) as server:
        model = openai(server)
        assert text_of(model) == text_of(model) == "One."
        first, second, third = server.bodies
    assert left_out <= set(first) - set(second)
    assert set(second) == set(third)


def test_half_surrogates_in_a_prompt_can_be_sent():
    with ChatServer(streamed(openai_events("One."))) as server:
        assert text_of(openai(server), prompt="odd \ud800") == "One."


@pytest.fixture
def certificate(tmp_path, monkeypatch):
    """A certificate for 127.0.0.1 that this process trusts."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, made = tmp_path / "key.pem", tmp_path / "made.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=me"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(made)]
    subprocess.run([*command, *names], check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(made))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return context


def test_over_tls_it_is_the_same(certificate):
    waiting = Waiting("One ")
    cancelled = threading.Event()
    with ChatServer(streamed(openai_events("Before.")), waiting) as server:
        server.encrypt(certificate)
        model = openai(server)
        assert server.url.startswith("https://") and text_of(model) == "Before."
        threading.Thread(target=lambda: (waiting.began.wait(60), cancelled.set()), daemon=True).start()
        with pytest.raises(DeadlineError), deadline(60, cancelled=cancelled):
            text_of(model)
        assert waiting.left.wait(60)
        waiting.go.set()


def test_a_stream_of_words_without_end_is_cut():
    words = "word " * 20_000
    asked = event({"choices": [{"delta": {"content": words}}]})
    sent = itertools.count()

    def endless(_):
        return 200, (asked for _ in iter(lambda: next(sent) < 100_000, False)), SSE

    with ChatServer(endless) as server:
        with pytest.raises(AnswerError, match="more than 16 MB") as caught:
            text_of(openai(server))
        assert caught.value.kind == "cut" and len(server.requests) == 1
    assert next(sent) < 1_000
