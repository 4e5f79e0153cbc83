"""Retrievers over an index give what ``Engine.search`` and ``Engine.context`` give, in every framework."""

import asyncio
import json

import pytest

from dartboard import default_model
from dartboard.engine import Engine, index_paths
from dartboard.errors import ConfigError
from dartboard.ingest import ChunkingConfig
from dartboard.selection import MMR
from dartboard.stores import open_store
from tests import tea
from tests.context.test_context import GUIDE, NOTE
from tests.context.test_context import QUERY as RENEWING
from tests.integrations.frameworks import FRAMEWORKS, Patient, while_free
from tests.tea import QUERY

EVERY = pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda one: type(one).__name__)


@pytest.fixture(scope="module")
def engine():
    return tea.filled()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("context")
    (folder / "guide.md").write_text(GUIDE)
    (folder / "note.txt").write_text(NOTE)
    path = str(folder / "index.dartboard")
    with Engine(open_store(path), model=default_model(), retriever="dense") as engine:
        small = ChunkingConfig(size=24, overlap=8, smallest=4)
        index_paths(engine, [folder / "guide.md", folder / "note.txt"], chunking=small)
    return path


@EVERY
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 3},
        {"k": 3, "method": MMR(0.3), "sigma": 0.2},
        {"k": 2, "where": "number >= 3", "triage_k": 5},
        {"token_budget": 12},
        {"k": 3, "also": ["how is coffee roasted"], "seen": ["a"], "exclude": ["e"]},
        {"k": 2, "offset": 2, "max_per": {"source": 3}},
    ],
)
def test_picks_are_those_of_the_engine(engine, framework, options):
    expected = engine.search(QUERY, **options)
    found = framework.retrieve(engine, **options)
    assert [id for id, *_ in found] == [chunk.id for chunk in expected.chunks]
    for rank, (id, text, metadata, score) in enumerate(found):
        note = metadata["dartboard"]
        assert text == tea.TEXTS[id] and metadata["tags"] == ["tea", id] and score in (None, note["score"])
        assert note["gain"] == expected.scores[rank] and note["vector_source"] == "index:default"
        assert note["stands_for"] == expected.metadata["stands_for"][rank]
        assert note["retriever"] == "hybrid" and json.loads(json.dumps(note, allow_nan=False)) == note
    found[0][2]["tags"].append("changed")
    assert "changed" not in framework.retrieve(engine, **options)[0][2]["tags"]


@EVERY
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"token_budget": 120},
        {"token_budget": 90, "expand": False},
        {"token_budget": 200, "order": "source", "k": 2},
        {"token_budget": 300, "also": ["When is tea served?"], "max_per_source": 2},
    ],
)
def test_merged_passages_are_those_of_the_engine_s_context(path, framework, options):
    with Engine.open(path, read_only=True) as engine:
        expected = engine.context(RENEWING, **options)
        found = framework.retrieve(engine, RENEWING, merge=True, **options)
    assert [text for _, text, _, _ in found] == [one.text for one in expected.passages]
    for (id, _, metadata, score), one in zip(found, expected.passages, strict=True):
        assert id == "+".join(one.chunk_ids) and metadata["chunk_ids"] == list(one.chunk_ids)
        assert (metadata["number"], metadata["source"], metadata["gain"]) == (
            one.number,
            one.source,
            one.gain,
        )
        assert metadata.get("heading", "") == one.heading and score in (None, one.gain)
        whole = metadata["dartboard"]
        assert whole["tokens"] == expected.tokens <= whole["token_budget"] == expected.token_budget


@EVERY
def test_wrong_settings_are_refused_at_once(engine, framework):
    for wrong in (
        {"merge": True, "order": "best"},
        {"merge": True, "k": 3, "token_budget": None},
        {"k": 0},
        {"kk": 3},
    ):
        with pytest.raises((ValueError, TypeError)):
            framework.retriever(engine, **wrong)
    with pytest.raises(ConfigError, match="token_budget"):
        framework.retrieve(engine, merge=True, token_budget=3)


@EVERY
def test_the_event_loop_stays_free(framework):
    patient = Patient()
    patient.free.set()
    engine = tea.filled(model=patient)
    patient.free.clear()
    assert asyncio.run(while_free(patient, framework.aretrieve(engine)))
