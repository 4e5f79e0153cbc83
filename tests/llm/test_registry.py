"""Language models by name: what is wrong with a name or a key is said before anything is asked."""

import pytest

from dartboard.embeddings.by_name import endpoint_name
from dartboard.errors import ConfigError
from dartboard.llm import GeminiChat, OpenAIChat, chat_model
from dartboard.mining.judges import judge_by_name


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)


def test_a_name_as_text_or_read_already(monkeypatch):
    local = "openai:llama3@http://127.0.0.1:1/v1"
    assert chat_model(local).name == chat_model(endpoint_name(local)).name
    assert isinstance(chat_model(local), OpenAIChat), "servers of one's own need no key"
    monkeypatch.setenv("GEMINI_API_KEY", "AIza")
    assert isinstance(chat_model("gemini:g"), GeminiChat)


@pytest.mark.parametrize("name", ["", "llama3", "openai:", "openai:m@", "anthropic:m"])
def test_a_name_of_another_form(name):
    with pytest.raises(ConfigError, match=r"unknown language model .*: use openai:MODEL"):
        chat_model(name)


@pytest.mark.parametrize("kind", ["openai", "gemini"])
@pytest.mark.parametrize("make", [chat_model, judge_by_name])
def test_a_missing_key_is_said_at_once(make, kind):
    with pytest.raises(ConfigError, match=f"{kind}:m needs a key: set the variable {kind.upper()}_API_KEY"):
        make(f"{kind}:m")
    assert make(f"{kind}:m", need_key=False).name.startswith(f"{kind}:m")
