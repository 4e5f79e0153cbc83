"""Passages of a context as the documents of each framework: merged, numbered, within the budget."""

import asyncio
import os
import pickle

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import pytest
from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode

from dartboard import default_model
from dartboard.engine import Engine, index_paths
from dartboard.errors import ConfigError
from dartboard.ingest import ChunkingConfig
from dartboard.integrations import haystack, langchain, llama_index
from dartboard.stores import open_store
from tests.context.test_context import GUIDE, NOTE, QUERY


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


@pytest.fixture(scope="module")
def engine(path):
    with Engine.open(path, read_only=True) as engine:
        yield engine


def by_langchain(engine, **options):
    retriever = langchain.DartboardContextRetriever(engine=engine, **options)
    return [(one.id, one.page_content, one.metadata) for one in retriever.invoke(QUERY)]


def by_llama_index(engine, **options):
    found = llama_index.DartboardContextRetriever(engine, **options).retrieve(QUERY)
    assert [one.score for one in found] == [one.metadata["gain"] for one in found]
    return [(one.node_id, one.text, one.metadata) for one in found]


def by_haystack(engine, **options):
    found = haystack.DartboardContextRetriever(engine=engine, **options).run(QUERY)["documents"]
    assert [one.score for one in found] == [one.meta["gain"] for one in found]
    return [(one.id, one.content, one.meta) for one in found]


EVERY = pytest.mark.parametrize("door", [by_langchain, by_llama_index, by_haystack])


@EVERY
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"token_budget": 120},
        {"token_budget": 90, "expand": False},
        {"token_budget": 200, "order": "source"},
        {"token_budget": 400, "tokenizer": len},
        {"token_budget": 300, "also": ["When is tea served?"], "max_per_source": 2},
    ],
)
def test_passages_are_those_of_the_engine(engine, door, options):
    expected = engine.context(QUERY, **options)
    found = door(engine, **options)
    assert [text for _, text, _ in found] == [one.text for one in expected.passages]
    for (id, _, metadata), one in zip(found, expected.passages, strict=True):
        assert id == "+".join(one.chunk_ids) and metadata["chunk_ids"] == list(one.chunk_ids)
        assert (metadata["number"], metadata["source"], metadata["gain"]) == (
            one.number,
            one.source,
            one.gain,
        )
        assert metadata.get("heading", "") == one.heading
        whole = metadata["dartboard"]
        assert whole["tokens"] == expected.tokens <= whole["token_budget"] == expected.token_budget
        assert whole["relevance"] == expected.result.metadata["relevance"]


@EVERY
def test_neighbours_are_one_document(engine, door):
    first = door(engine, token_budget=120)[0]
    assert len(first[2]["chunk_ids"]) > 1 and "valid for a day" in first[1]


@EVERY
def test_wrong_options_are_refused_at_once(engine, door):
    for wrong, message in (
        ({"order": "best"}, "order|'gain'"),
        ({"token_budget": None}, "token_budget"),
        ({"offset": 2}, "offset counts picks"),
        ({"ordr": "gain"}, "ordr"),
    ):
        with pytest.raises((ConfigError, ValueError, TypeError), match=message):
            door(engine, **wrong)
    with pytest.raises(ConfigError, match="token_budget 3 is too small"):
        door(engine, token_budget=3)


def test_langchain(path):
    retriever = langchain.DartboardContextRetriever.open(path, token_budget=200)
    chain = retriever | RunnableLambda(lambda found: "\n".join(one.page_content for one in found))
    assert "valid for a day" in chain.invoke(QUERY)
    plain = retriever.invoke(QUERY, token_budget=60, order="source", expand=False)
    assert plain[0].metadata["dartboard"]["token_budget"] == 60
    assert asyncio.run(retriever.ainvoke(QUERY)) == retriever.invoke(QUERY)
    with pytest.raises(TypeError, match=r"call DartboardContextRetriever\.open there"):
        pickle.dumps(retriever)
    retriever.engine.close()


def test_llama_index(path):
    retriever = llama_index.DartboardContextRetriever.open(path, token_budget=200, metadata_key="why")
    answer = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query(QUERY)
    assert [one.metadata["number"] for one in answer.source_nodes] == list(
        range(1, len(answer.source_nodes) + 1)
    )
    read = answer.source_nodes[0].node.get_content(MetadataMode.LLM)
    assert "number: 1" in read and "guide.md" in read and "heading: " in read
    assert "chunk_ids" not in read and "why" not in read
    again = asyncio.run(retriever.aretrieve(QUERY))
    assert [one.node_id for one in again] == [one.node_id for one in answer.source_nodes]
    retriever.engine.close()


def test_haystack(path):
    template = "{% for one in documents %}[{{ one.meta.number }}] {{ one.content }}\n{% endfor %}"
    pipeline = Pipeline()
    retriever = haystack.DartboardContextRetriever(path, token_budget=200, order="ends", expand=False)
    pipeline.add_component("retriever", retriever)
    pipeline.add_component("prompt", PromptBuilder(template, required_variables=["documents"]))
    pipeline.connect("retriever.documents", "prompt.documents")
    asked = {"retriever": {"query": QUERY}}
    prompt = pipeline.run(asked)["prompt"]["prompt"]
    assert prompt.startswith("[1] ") and "valid for a day" in prompt
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["dartboard"])
    assert again.run(asked)["prompt"]["prompt"] == prompt
    loaded = again.get_component("retriever")
    assert (loaded.order, loaded.expand, loaded.token_budget) == ("ends", False, 200)
    filters = {"field": "meta.kind", "operator": "==", "value": "text"}
    found = asyncio.run(retriever.run_async(QUERY, filters=filters, top_k=1))["documents"]
    assert len(found) == 1 and "note.txt" in found[0].meta["source"]
    pipeline.close()
    again.close()
