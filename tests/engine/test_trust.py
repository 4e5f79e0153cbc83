"""What the user confirms is used, for the place it was confirmed for; keys go where the user sent them."""

import json
import os
import stat

import pytest

from dartboard.cli import main
from dartboard.embeddings.by_name import model_by_name
from dartboard.engine import Engine, index_paths, trust
from dartboard.errors import ConfigError, UntrustedModelError
from dartboard.stores.memory import MemoryStore
from tests.api.core_app import BASE, running
from tests.cluster.models import sociable_model
from tests.hostile_index import QUESTION, SECRET, attacking


@pytest.fixture
def user(tmp_path, monkeypatch):
    home = tmp_path / "user"
    (home / "docs").mkdir(parents=True)
    (home / "docs" / "mine.md").write_text("# Mine\n\nMy own notes on treasure.\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def server():
    with attacking() as server:
        yield server


def search(store, *more) -> int:
    return main(["search", QUESTION, "--store", str(store), *more])


def keys(server) -> set[str]:
    """The keys that came with the last requests, which are forgotten."""
    seen = {
        value
        for request in server.requests
        for name, value in request.headers.items()
        if name.lower() in ("authorization", "x-goog-api-key")
    }
    asked = any(QUESTION in request.body.decode() for request in server.requests)
    server.requests.clear()
    return seen | ({"question"} if asked else set())


@pytest.mark.parametrize("kind", ["openai", "gemini"])
def test_what_the_user_made_goes_on_working(kind, user, server):
    name = f"{kind}:m@{server.url}"
    assert main(["index", "docs", "--model", name, "--store", "mine.dartboard"]) == 0
    server.requests.clear()
    assert search("mine.dartboard") == 0
    assert keys(server) == {"question", SECRET if kind == "gemini" else f"Bearer {SECRET}"}
    assert main(["snapshot", "mine.snapshot", "--store", "mine.dartboard"]) == 0
    assert main(["restore", "mine.snapshot", "--store", "moved.dartboard"]) == 0
    assert search("moved.dartboard") == 0


def test_confirmed_by_flag_and_remembered_without_the_key(user, server, tmp_path, capsys):
    store = server.index(tmp_path / "theirs")
    assert search(store, "--trust-model") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"sent to {server.url}; OPENAI_API_KEY is not sent there" in said
    assert keys(server) == {"question"}
    assert search(store) == 0
    assert keys(server) == {"question"}
    kept = list((user / "config").rglob("*.json"))
    assert len(kept) == 1 and stat.S_IMODE(kept[0].stat().st_mode) == 0o600
    assert json.loads(kept[0].read_text())["place"] == os.path.realpath(store)
    kept[0].write_text("{")
    assert search(store) == 1


def test_it_holds_for_that_name_and_that_file_alone(user, server, tmp_path):
    first, second = server.index(tmp_path / "first"), server.index(tmp_path / "second")
    assert search(first, "--trust-model") == 0
    server.requests.clear()
    assert search(second) == 1
    with Engine.open(str(first)) as engine:
        settings = engine.collection.manifest.settings
        engine.collection.configure({**settings, "model": f"openai:other@{server.url}"})
    assert search(first) == 1
    assert server.requests == []


def test_the_users_own_words_send_the_key(user, server, tmp_path, monkeypatch):
    store = server.index(tmp_path / "theirs")
    name = f"openai:m@{server.url}"
    both = {"question", f"Bearer {SECRET}"}
    assert search(store, "--model", name) == 0 and keys(server) == both
    assert search(store) == 1  # once is once
    monkeypatch.setenv("DARTBOARD_TRUST_MODELS", f"onnx:x; {name}")
    assert search(store) == 0 and keys(server) == both
    monkeypatch.delenv("DARTBOARD_TRUST_MODELS")
    own = user / "config" / "dartboard"
    own.mkdir(parents=True)
    (own / "dartboard.toml").write_text(f'trust_models = "{name}"\n')
    assert search(store) == 0 and keys(server) == both
    (own / "dartboard.toml").unlink()
    assert search(store, "--model", name, "--trust-model") == 0 and keys(server) == both
    assert search(store) == 0 and keys(server) == both


def test_a_host_that_the_environment_names_gets_the_key(user, server, tmp_path, monkeypatch):
    store = server.index(tmp_path / "theirs")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    assert search(store) == 1 and server.requests == []
    assert search(store, "--trust-model") == 0
    assert keys(server) == {"question", f"Bearer {SECRET}"}


@pytest.mark.parametrize(
    ("name", "sends"),
    [
        ("openai:m", True),
        ("openai:m@https://api.openai.com/v1", True),
        ("openai:m@https://api.openai.com:443/v1", True),
        ("openai:m@http://api.openai.com/v1", False),
        ("openai:m@https://api.openai.com:8443/v1", False),
        ("openai:m@https://api.openai.com.attacker.example/v1", False),
        ("openai:m@https://attacker.example/https://api.openai.com/v1", False),
        ("openai:m@https://generativelanguage.googleapis.com/v1", False),
        ("gemini:m", True),
        ("gemini:m@https://attacker.example", False),
    ],
)
def test_only_the_providers_own_host_gets_the_key(name, sends, user):
    store = MemoryStore()
    with pytest.raises(UntrustedModelError):
        trust.confirm(store, "model", name, collection="default")
    assert trust.confirm(store, "model", name, collection="default", trust=True) is sends
    assert trust.confirm(store, "model", name, collection="default", trust=[name]) is True


def test_gemini_without_its_key_says_how_to_go_on(user, server, tmp_path, capsys):
    store = server.index(tmp_path / "theirs", "gemini")
    assert search(store, "--trust-model") == 2
    assert "GEMINI_API_KEY goes only to hosts that you named" in capsys.readouterr().err
    assert server.requests == []
    with pytest.raises(ConfigError, match="that you named"):
        model_by_name(f"gemini:m@{server.url}", send_key=False)


def test_an_index_of_an_older_version_is_confirmed_by_naming_its_model(user, server, tmp_path):
    """Nothing was kept when it was made."""
    store, name = server.index(tmp_path / "theirs"), f"openai:m@{server.url}"
    assert search(store) == 1
    assert main(["index", "docs", "--model", name, "--store", str(store)]) == 0
    assert search(store) == 0


def test_programs_confirm_by_an_argument(user, server, tmp_path):
    store, name = str(server.index(tmp_path / "theirs")), f"openai:m@{server.url}"
    with Engine.open(store, trust_model=True) as engine:
        engine.search(QUESTION)
        assert keys(server) == {"question"}
        with pytest.raises(UntrustedModelError, match="no API key"):
            _ = engine.model_wanted  # machines of a cluster would load it by its name, and send theirs
    with Engine.open(store, trust_model=name) as engine:
        engine.search(QUESTION)
        assert keys(server) == {"question", f"Bearer {SECRET}"}
    assert not list((user / "config").rglob("*.json"))


def test_what_is_made_in_memory_can_be_searched(user, server):
    store = MemoryStore()
    index_paths(Engine(store, model=f"openai:m@{server.url}"), ["docs"])
    assert Engine(store).search(QUESTION).chunks
    assert not list((user / "config").rglob("*.json"))


def test_the_service_and_the_tools_by_flag(user, server, tmp_path, monkeypatch):
    from dartboard.integrations.mcp import OpenIndex

    store = server.index(tmp_path / "theirs")
    served = []
    monkeypatch.setattr("dartboard.cli.serve._run", lambda settings, bound: served.append(settings))
    assert main(["serve", "--store", str(store), "--trust-model"]) == 0
    with running(user / "home", store=served[0].store) as client:
        assert client.post(f"{BASE}/retrieve", json={"query": QUESTION}).status_code == 200
    assert keys(server) == {"question"}
    other = server.index(tmp_path / "other")
    monkeypatch.setattr("dartboard.cli.mcp._serve", lambda found, port: served.append(found))
    assert main(["mcp", "--store", str(other), "--trust-model"]) == 0
    with OpenIndex(str(other)).engine() as engine:
        engine.search(QUESTION)
    assert keys(server) == {"question"}
    third = server.index(tmp_path / "third")
    settings = {"store": str(third), "trust_models": f"openai:m@{server.url}"}
    with running(user / "third", **settings) as client:
        assert client.post(f"{BASE}/retrieve", json={"query": QUESTION}).status_code == 200
    assert keys(server) == {"question", f"Bearer {SECRET}"}


def test_a_relative_path_is_confirmed_for_its_folder(user, tmp_path, monkeypatch, capsys):
    sociable_model(user / "model")
    assert main(["index", "docs", "--model", "onnx:model", "--store", "mine.dartboard"]) == 0
    assert search("mine.dartboard") == 0
    trap = tmp_path / "trap"
    trap.mkdir()
    sociable_model(trap / "model")
    monkeypatch.chdir(trap)
    assert search(user / "mine.dartboard") == 1
    assert "asks for the model 'onnx:model'" in capsys.readouterr().err


def test_a_file_of_settings_is_confirmed_until_it_changes(user, server, capsys):
    assert main(["config", "--trust"]) == 2
    (user / "dartboard.toml").write_text(f'model = "openai:m@{server.url}"\n')
    assert main(["index", "docs"]) == 2
    assert main(["config", "--trust"]) == 0
    assert main(["index", "docs"]) == 0
    (user / "dartboard.toml").write_text(f'model = "openai:n@{server.url}"\n')
    assert main(["index", "docs"]) == 2
    assert main(["index", "docs", "--model", f"openai:m@{server.url}"]) == 0


def test_a_folder_that_cannot_be_written_is_said(user, server, tmp_path, capsys):
    store = server.index(tmp_path / "theirs")
    (user / "config").write_text("a file where a folder should be")
    assert search(store, "--trust-model") == 0
    assert "cannot be stored" in capsys.readouterr().err


def test_a_host_that_only_looks_like_another_is_shown_as_it_is():
    what = trust.foreign("model", "openai:m@https://\u0430pi.openai.com/v1")
    assert what is not None and what.isascii() and "xn--" in what
