"""An index that somebody sent: whatever opens it, its author gets neither the API key nor the question."""

import asyncio
import json

import pytest

from dartboard.cli import main
from dartboard.engine import Engine
from dartboard.errors import DartboardError
from dartboard.mining.corpora import open_corpus
from dartboard.stores.memory import MemoryStore
from tests.api.core_app import BASE, running
from tests.hostile_index import QUESTION, SECRET, attacking
from tests.stores.postgres_server import fresh

COMMANDS = {
    "search": ["search", QUESTION],
    "search with a retriever": ["search", QUESTION, "--retriever", "hybrid"],
    "ask": ["ask", QUESTION, "--model", "openai:m@http://127.0.0.1:9"],
    "index": ["index", "docs"],
    "index on a cluster": ["index", "docs", "--ray", "local"],
    "serve": ["serve", "--port", "0"],
    "doctor": ["doctor"],
}


@pytest.fixture
def victim(tmp_path, monkeypatch):
    """A user with both keys, who has confirmed nothing."""
    home = tmp_path / "victim"
    (home / "docs").mkdir(parents=True)
    (home / "docs" / "mine.md").write_text("# Mine\n\nMy own secret notes.\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(home)
    return home


@pytest.fixture(params=["openai", "gemini"])
def kind(request):
    return request.param


@pytest.fixture
def attacker():
    with attacking() as server:
        yield server


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (command, kind)
        for command in COMMANDS
        for kind in ("openai", "gemini")
        if kind == "openai" or "cluster" not in command  # which takes seconds to start
    ],
)
def test_no_command_sends_anything(command, kind, attacker, victim, tmp_path, capsys):
    if "cluster" in command:
        pytest.importorskip("ray")
    store = attacker.index(tmp_path / "theirs", kind)
    assert main([*COMMANDS[command], "--store", str(store)]) == 1
    assert attacker.requests == []
    said = capsys.readouterr()
    told = " ".join((said.out + said.err).split())
    assert f"asks for the model '{kind}:m@{attacker.url}'" in told and "came from the index" in told
    assert "--trust-model" in told and SECRET not in told


def test_commands_that_need_no_model_go_on(attacker, victim, tmp_path, capsys):
    store = attacker.index(tmp_path / "theirs")
    for command in (["stats"], ["delete", "--filter", 'kind = "markdown"', "--dry-run"], ["snapshot", "s"]):
        assert main([*command, "--store", str(store)]) == 0
    assert attacker.requests == []


def test_restoring_a_snapshot_sends_nothing(kind, attacker, victim, tmp_path, capsys):
    snapshot = attacker.snapshot(tmp_path / "theirs", kind)
    assert main(["restore", str(snapshot), "--store", "mine.dartboard"]) == 0
    assert f"asks for the model '{kind}:m@{attacker.url}'" in capsys.readouterr().err
    assert main(["search", QUESTION, "--store", "mine.dartboard"]) == 1
    assert main(["snapshot", "copy", "--store", "mine.dartboard"]) == 0
    assert main(["restore", "copy", "--store", "other.dartboard"]) == 0
    assert main(["search", QUESTION, "--store", "other.dartboard"]) == 1
    assert attacker.requests == []


def test_the_service_sends_nothing(kind, attacker, victim, tmp_path):
    """Also where another collection than the service's own is the stranger's."""
    store = attacker.index(tmp_path / "theirs", kind, collection="theirs")
    with running(victim / "home", store=str(store)) as client:
        found = client.post(f"{BASE}/retrieve", json={"query": QUESTION, "collection": "theirs"})
        listed = client.get(f"{BASE}/collections")
        for path in ("collections/theirs", "collections/theirs/documents"):
            client.get(f"{BASE}/{path}")
    assert found.status_code == 503 and attacker.url not in found.text
    assert listed.status_code == 200
    assert "theirs" not in [one["name"] for one in listed.json()["collections"]]
    assert attacker.requests == []


def test_tools_for_language_models_send_nothing(kind, attacker, victim, tmp_path):
    pytest.importorskip("mcp")
    from mcp import Client

    from dartboard.integrations.mcp import OpenIndex, create_server

    index = OpenIndex(str(attacker.index(tmp_path / "theirs", kind)))

    async def ask():
        async with Client(create_server(index)) as client:
            for tool, more in (("search", {}), ("context", {}), ("explain", {"id": "x"})):
                found = await client.call_tool(tool, {"query": QUESTION, **more})
                assert found.is_error and "--trust-model" in found.content[0].text

    asyncio.run(ask())
    index.close()
    assert attacker.requests == []


def test_programs_send_nothing(kind, attacker, victim, tmp_path):
    store = str(attacker.index(tmp_path / "theirs", kind))
    with Engine.open(store) as engine:
        for work in (
            lambda: engine.search(QUESTION),
            lambda: engine.context(QUESTION),
            lambda: engine.duplicates(),
            lambda: engine.candidates(QUESTION),
            lambda: engine.model,
            lambda: engine.model_wanted,
        ):
            with pytest.raises(DartboardError, match="came from the index"):
                work()
    with pytest.raises(DartboardError, match="came from the index"):
        open_corpus(f"store:{store}").dense(QUESTION, 1)
    memory = MemoryStore()
    memory.restore(attacker.snapshot(tmp_path / "again", kind))
    with pytest.raises(DartboardError, match="came from the index"):
        Engine(memory).search(QUESTION)
    assert attacker.requests == []


@pytest.mark.parametrize("library", ["langchain", "llama_index", "haystack"])
def test_retrievers_of_frameworks_send_nothing(library, attacker, victim, tmp_path):
    pytest.importorskip(
        {"langchain": "langchain_core", "llama_index": "llama_index.core"}.get(library, library)
    )
    store = str(attacker.index(tmp_path / "theirs"))
    with pytest.raises(DartboardError, match="came from the index"):
        if library == "langchain":
            from dartboard.integrations.langchain import DartboardRetriever

            DartboardRetriever.open(store).invoke(QUESTION)
        elif library == "llama_index":
            from dartboard.integrations.llama_index import DartboardRetriever

            DartboardRetriever.open(store).retrieve(QUESTION)
        else:
            from dartboard.integrations.haystack import DartboardRetriever

            DartboardRetriever(store=store).run(QUESTION)
    assert attacker.requests == []


def test_a_server_that_others_write_to_is_no_better(attacker, victim, capsys):
    from tests.hostile_index import elsewhere

    url = fresh()
    with elsewhere(victim):
        attacker.fill(url, victim / "docs")
    assert main(["search", QUESTION, "--store", url]) == 1
    assert attacker.requests == [] and "came from the index" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("onnx:{folder}", "weights would be loaded from the folder"),
        ("sentence-transformers:{folder}", "weights would be loaded from"),
        ("sentence-transformers:evil/model", "a name on the Hugging Face hub"),
        ("openai:m@http://good.example\x1b[2K\r@x", "would be sent to"),
        ("openai:text-embedding-3-small", "would be sent to https://api.openai.com/v1"),
    ],
)
def test_no_weights_are_loaded(name, told, attacker, victim, tmp_path, capsys, monkeypatch):
    """The folder is there and would be read; a name cannot steer the terminal."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    store = attacker.index(tmp_path / "theirs")
    trap = tmp_path / "weights"
    trap.mkdir()
    (trap / "modules.json").write_text("[]")
    _store(store, model=name.format(folder=trap))
    assert main(["search", QUESTION, "--store", str(store)]) == 1
    said = capsys.readouterr().err
    assert told in said and "nothing was sent or loaded" in said
    assert "\x1b" not in said and "\r" not in said and said.count("\n") == 1
    assert main(["stats", "--store", str(store)]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\r" not in said


@pytest.mark.parametrize(
    "retriever", ["colbert:{0}", "splade:{0}", "hybrid:dense=1,splade:{0}=1", "rrf:dense,colbert:{0}"]
)
def test_no_retriever_of_the_index_loads_weights(retriever, attacker, victim, tmp_path, capsys):
    store = attacker.index(tmp_path / "theirs")
    _store(store, model="default", retriever=retriever.format(tmp_path))
    assert main(["search", QUESTION, "--store", str(store), "--model", f"openai:m@{attacker.url}"]) == 1
    assert "asks for the retriever" in capsys.readouterr().err


def test_a_folder_of_settings_is_not_the_users(attacker, victim, capsys):
    """Whatever sends, loads or lets others in; flags and harmless settings work all the same."""
    for line in (
        f'answer_model = "openai:m@{attacker.url}"',
        f'model = "openai:m@{attacker.url}"',
        'retriever = "splade:weights"',
        'pair_scorer = "cross-encoder:weights"',
        'store = "postgresql://attacker.example/docs"',
        'ray = "attacker.example:6379"',
        'trust_models = "onnx:weights"',
    ):
        (victim / "dartboard.toml").write_text(f"k = 3\n{line}\n")
        assert main(["ask", QUESTION]) == 2
        said = capsys.readouterr().err
        assert f"sets {line.split()[0]} = " in said and "dartboard config --trust" in said
        assert main(["config", "--json"]) == 0
        assert f"sets {line.split()[0]}, which is not used" in capsys.readouterr().err
    for line in (
        'host = "0.0.0.0"',
        'origins = ["https://attacker.example"]',
        f'answer_model = "openai:m@{attacker.url}"',
    ):
        (victim / "dartboard.toml").write_text(f"[serve]\n{line}\n")
        assert main(["serve", "--port", "0"]) == 2
        assert f"sets [serve] {line.split()[0]} = " in capsys.readouterr().err
    (victim / "dartboard.toml").write_text(
        'k = 3\npair_scorer = "late-interaction"\nretriever = "hybrid:0.6"\n'
    )
    assert main(["config", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["k"]["value"] == 3
    assert attacker.requests == []


def _store(path, **names):
    with Engine.open(str(path)) as engine:
        collection = engine.collection
        collection.configure({**collection.manifest.settings, **names})
