"""Model endpoints that send their clients elsewhere: nobody follows, so no other host gets key or texts."""

import pytest

from dartboard.answering import AnswerError, answer_model
from dartboard.embeddings.by_name import model_by_name
from dartboard.errors import DartboardError
from dartboard.llm.gemini import GeminiChat
from dartboard.llm.openai import OpenAIChat
from tests.embeddings.local_server import LocalServer

SECRET = "sk-do-not-tell"


def _embed(kind, url):
    model_by_name(f"{kind}:m@{url}").encode_query("What is the secret?")


def _answer(kind, url):
    list(answer_model(f"{kind}:m@{url}").stream("What is the secret?"))


def _judge(kind, url):
    chat = OpenAIChat("m", url) if kind == "openai" else GeminiChat("m", base_url=url)
    found = chat.complete("What is the secret?")
    assert not found.text
    raise DartboardError(found.trouble)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", ["openai", "gemini"])
@pytest.mark.parametrize("ask", [_embed, _answer, _judge])
def test_no_client_follows_a_redirect(ask, kind, status, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    attacker = LocalServer(lambda request: (200, b"{}", {}))
    moved = {"location": f"{attacker.url.replace('127.0.0.1', 'localhost')}/take"}
    server = LocalServer(lambda request: (status, b"", moved))
    try:
        with pytest.raises((DartboardError, AnswerError)) as caught:
            ask(kind, server.url)
        assert server.requests and not attacker.requests
        assert SECRET in str(server.requests[0].headers)  # the host that was named gets it
        assert str(status) in str(caught.value) and SECRET not in str(caught.value)
    finally:
        server.stop()
        attacker.stop()
