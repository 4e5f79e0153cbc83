"""LlamaIndex: the retriever and the postprocessor in LlamaIndex's own pipelines."""

import asyncio
import json
import pickle
from copy import copy, deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from dartboard import select
from dartboard.embeddings import default_model
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.llama_index import DartboardEmbedding, DartboardPostprocessor, DartboardRetriever
from dartboard.selection import MMR
from dartboard.stores import open_store
from tests.examples import examples
from tests.integrations.samples import UNUSABLE, Patient, check_notes, cloud, filled, while_free
from tests.models import WordBag
from tests.tea import QUERY, TEXTS

COFFEE = "how is coffee roasted"


class Words(BaseEmbedding):
    """A small embedding of LlamaIndex's own kind."""

    def _get_query_embedding(self, query):
        return WordBag().encode([query])[0].tolist()

    def _get_text_embedding(self, text):
        return self._get_query_embedding(text)

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


def nodes(**changes):
    return [
        NodeWithScore(node=TextNode(id_=id, text=text, metadata={"source": "x", "tags": [id]}), score=0.5)
        for id, text in TEXTS.items()
    ]


def carrying(vectors):
    return [
        NodeWithScore(node=TextNode(id_=f"d{place}", text=f"text {place}", embedding=vector.tolist()))
        for place, vector in enumerate(vectors)
    ]


def ids(found):
    return [scored.node.node_id for scored in found]


def notes(found):
    return [scored.metadata["dartboard"] for scored in found]


# --- the retriever


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"k": 3, "sigma": 0.05},
        {"token_budget": 12},
        {"k": 4, "method": "mmr"},
        {"k": 4, "where": "source = 'False.md'"},
        {"k": 4, "must_include": ["j"], "exclude": ["a"], "triage_k": 6},
        {"k": 9, "max_per_source": 2, "min_gain_share": 0.01, "min_similarity": 0.1},
    ],
)
def test_the_retriever_finds_what_the_engine_finds(knobs):
    engine = filled()
    found = DartboardRetriever(engine, **knobs).retrieve(QUERY)
    result = engine.search(QUERY, **knobs)
    assert ids(found) == [chunk.id for chunk in result.chunks]
    assert [scored.score for scored in found] == result.metadata["similarity"]
    assert [note["gain"] for note in notes(found)] == result.scores
    check_notes(notes(found))
    assert [note["stands_for"] for note in notes(found)] == result.metadata["stands_for"]
    assert found[0].node.metadata["number"] == result.chunks[0].metadata["number"]
    assert found[0].node.ref_doc_id == result.chunks[0].metadata["source"]


def test_filters_of_llama_index():
    given = MetadataFilters(filters=[MetadataFilter(key="number", value=5, operator=">=")])
    engine = filled()
    found = DartboardRetriever(engine, filters=given, k=3).retrieve(QUERY)
    assert ids(found) == [chunk.id for chunk in engine.search(QUERY, k=3, where="number >= 5").chunks]
    with pytest.raises(ConfigError, match="where or filters"):
        DartboardRetriever(engine, filters=given, where="number > 3")
    with pytest.raises(ConfigError, match="must be a dartboard Engine"):
        DartboardRetriever("index.dartboard")
    with pytest.raises(ConfigError):
        DartboardRetriever(engine, k=0)


def test_the_retriever_in_a_query_engine():
    retriever = DartboardRetriever(filled(), k=2)
    query_engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    answer = query_engine.query(QUERY)
    assert ids(answer.source_nodes) == ids(retriever.retrieve(QUERY))
    assert all(scored.text in str(answer) for scored in answer.source_nodes)
    assert "number: " in str(answer) and "dartboard" not in str(answer)
    again = asyncio.run(query_engine.aquery(QUERY))
    assert ids(again.source_nodes) == ids(answer.source_nodes)


def test_the_loop_stays_free_while_the_engine_works():
    model = Patient()
    model.free.set()
    retriever = DartboardRetriever(filled(model=model), k=2)
    expected = ids(retriever.retrieve(QUERY))
    model.free.clear()
    assert ids(asyncio.run(while_free(model, retriever.aretrieve(QUERY)))) == expected


def test_an_index_of_files_opens_by_its_path(tmp_path):
    from dartboard.engine import Engine, index_paths

    (tmp_path / "tea.md").write_text("# Tea\n\nTea grows on hills.\n")
    path = str(tmp_path / "tea.dartboard")
    with Engine(open_store(path)) as engine:
        index_paths(engine, tmp_path / "tea.md")
    retriever = DartboardRetriever.open(path, k=1)
    node = retriever.retrieve("Where does tea grow?")[0].node
    assert node.ref_doc_id == "tea.md"
    shown = node.get_content(metadata_mode=MetadataMode.LLM)
    assert "Tea grows on hills" in shown and "tea.md" in shown
    assert "hash" not in shown and "dartboard" not in shown
    with pytest.raises(TypeError, match=r"open index.*call DartboardRetriever\.open there"):
        pickle.dumps(retriever)
    assert copy(retriever).engine is retriever.engine
    retriever.engine.close()


# --- the postprocessor


@examples(40)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 90),
    k=st.integers(1, 12),
    method=st.sampled_from(["dartboard", "mmr", "top_k"]),
)
def test_the_postprocessor_picks_exactly_what_select_picks(seed, count, k, method):
    vectors, query = cloud(seed, count)
    expected = select(vectors, query, k=k, method=method)
    bundle = QueryBundle(QUERY, embedding=query.tolist())
    found = DartboardPostprocessor(use_node_embeddings=True, k=k, method=method).postprocess_nodes(
        carrying(vectors), query_bundle=bundle
    )
    assert ids(found) == [f"d{at}" for at in expected.indices]
    assert [scored.score for scored in found] == expected.similarity.tolist()
    assert [note["gain"] for note in notes(found)] == expected.gains.tolist()
    check_notes(notes(found))
    assert (
        notes(found)[0]["vector_source"] == "field:embedding" and notes(found)[0]["query_model"] == "unknown"
    )


@pytest.mark.parametrize(
    ("embed_model", "label"),
    [
        (None, "model:all-MiniLM-L6-v2"),
        ("default", "model:all-MiniLM-L6-v2"),
        (WordBag(), "model:WordBag"),
        (Words(), "model:Words"),
        (Words(model_name="bag-of-words"), "model:bag-of-words"),
        (DartboardEmbedding(), "model:all-MiniLM-L6-v2"),
    ],
)
def test_nodes_are_embedded_again(embed_model, label):
    found = DartboardPostprocessor(embed_model=embed_model, k=3).postprocess_nodes(nodes(), query_str=QUERY)
    assert len(found) == 3 and {note["vector_source"] for note in notes(found)} == {label}
    check_notes(notes(found))
    assert {note["score_before"] for note in notes(found)} == {0.5}


def test_nodes_are_read_as_llama_index_embeds_them():
    given_nodes = nodes()
    texts = [scored.node.get_content(metadata_mode=MetadataMode.EMBED) for scored in given_nodes]
    assert "source: x" in texts[0]
    expected = select(WordBag().encode(texts), WordBag().encode([QUERY])[0], k=4, texts=texts)
    found = DartboardPostprocessor(embed_model=WordBag(), k=4).postprocess_nodes(given_nodes, query_str=QUERY)
    assert ids(found) == [list(TEXTS)[at] for at in expected.indices]


def bag_of(given_nodes):
    return WordBag().encode([node.text for node in given_nodes])


def test_a_function_makes_the_vectors():
    picker = DartboardPostprocessor(vectors=bag_of, embed_model=WordBag(), k=3)
    found = picker.postprocess_nodes(nodes(), query_str=QUERY)
    assert notes(found)[0]["vector_source"] == "function:bag_of"
    expected = select(WordBag().encode(list(TEXTS.values())), WordBag().encode([QUERY])[0], k=3)
    assert ids(found) == [list(TEXTS)[at] for at in expected.indices]


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (None, "document 'd2' has no vector: all are to come from the nodes' own embeddings"),
        *UNUSABLE,
    ],
)
def test_nodes_without_usable_embeddings_are_an_error_that_names_the_node(vector, message):
    vectors, query = cloud(1, 5)
    given_nodes = carrying(vectors)
    given_nodes[2].node.embedding = vector
    picker = DartboardPostprocessor(use_node_embeddings=True)
    bundle = QueryBundle(QUERY, embedding=query.tolist())
    with pytest.raises(InvalidInputError, match=message):
        picker.postprocess_nodes(given_nodes, query_bundle=bundle)
    with pytest.raises(InvalidInputError, match=message):
        asyncio.run(picker.apostprocess_nodes(given_nodes, query_bundle=bundle))


def test_a_question_with_parts_is_embedded_by_the_querys_model():
    both = DartboardPostprocessor(embed_model=WordBag(), k=3, also=[COFFEE])
    found = both.postprocess_nodes(nodes(), query_str=QUERY)
    assert {"f"} < set(ids(found)) and {note["serves"] for note in notes(found)} == {0, 1}
    vectors = WordBag().encode_documents(list(TEXTS.values()))
    carried = [
        NodeWithScore(node=TextNode(id_=id, text=text, embedding=vector.tolist()))
        for (id, text), vector in zip(TEXTS.items(), vectors, strict=True)
    ]
    query = QueryBundle(QUERY, embedding=WordBag().encode([QUERY])[0].tolist())
    own = DartboardPostprocessor(use_node_embeddings=True, k=3, also=[COFFEE])
    with pytest.raises(ConfigError, match="say which model made them, with embed_model"):
        own.postprocess_nodes(carried, query)
    known = DartboardPostprocessor(use_node_embeddings=True, embed_model=Words(), k=3, also=[COFFEE])
    expected = select(vectors, WordBag().encode_queries([QUERY, COFFEE]), k=3)
    assert ids(known.postprocess_nodes(carried, query)) == [list(TEXTS)[at] for at in expected.indices]
    wrong = DartboardPostprocessor(use_node_embeddings=True, embed_model=WordBag(8), also=[COFFEE])
    with pytest.raises(InvalidInputError, match="has 8 dimensions"):
        wrong.postprocess_nodes(carried, query)
    page = DartboardPostprocessor(embed_model=WordBag(), k=3, offset=3).postprocess_nodes(
        nodes(), query_str=QUERY
    )
    assert len(page) == 3 and notes(page)[0]["coverage"] > notes(page)[0]["gain"]


def test_a_retriever_that_knows_what_was_seen():
    engine = filled()
    first = ids(DartboardRetriever(engine, k=3).retrieve(QUERY))
    more = DartboardRetriever(engine, k=3, seen=first, also=[COFFEE], max_per={"source": 1}).retrieve(QUERY)
    assert more and not set(first) & set(ids(more)) and notes(more)[0]["covered_before"] > 0
    sources = [one.node.metadata["source"] for one in more]
    assert len(sources) == len(set(sources))
    assert notes(DartboardRetriever(engine, k=1, prefer="number").retrieve(QUERY))[0]["copies"] == []


def test_the_query_must_be_embedded_like_the_nodes():
    vectors, query = cloud(1, 5)
    with pytest.raises(ConfigError, match="say which model made them, with embed_model"):
        DartboardPostprocessor(use_node_embeddings=True).postprocess_nodes(carrying(vectors), query_str=QUERY)
    with pytest.raises(InvalidInputError, match=r"by WordBag\) has 32 dimensions"):
        DartboardPostprocessor(use_node_embeddings=True, embed_model=WordBag()).postprocess_nodes(
            carrying(vectors), query_bundle=QueryBundle(QUERY, embedding=query.tolist())
        )
    with pytest.raises(InvalidInputError, match=r"as it was given\) has 2 dimensions"):
        DartboardPostprocessor(use_node_embeddings=True).postprocess_nodes(
            carrying(vectors), query_bundle=QueryBundle(QUERY, embedding=[1.0, 2.0])
        )


def test_a_query_embedded_by_another_model_is_embedded_again():
    bundle = QueryBundle(QUERY, embedding=[1.0, 2.0])
    picker = DartboardPostprocessor(embed_model=WordBag(), k=3)
    found = picker.postprocess_nodes(nodes(), query_bundle=bundle)
    assert ids(found) == ids(picker.postprocess_nodes(nodes(), query_str=QUERY))


def test_rewritings_of_the_query_are_what_is_embedded():
    bundle = QueryBundle("?", custom_embedding_strs=["cups of clay", "cups are made"])
    found = DartboardPostprocessor(embed_model=WordBag(), k=1).postprocess_nodes(nodes(), query_bundle=bundle)
    assert ids(found) == ["j"]


def test_given_nodes_stay_as_they_are():
    given_nodes = nodes()
    given_nodes[0].node.metadata["dartboard"] = {"mine": 1}
    before = deepcopy(given_nodes)
    found = DartboardPostprocessor(embed_model=WordBag(), k=10).postprocess_nodes(
        given_nodes, query_str=QUERY
    )
    assert given_nodes == before
    first = next(scored for scored in found if scored.node.node_id == "a")
    assert first.metadata["dartboard"]["before"] == {"mine": 1} and first.metadata["tags"] == ["a"]
    shown = first.node.get_content(metadata_mode=MetadataMode.LLM)
    assert "dartboard" not in shown and "source: x" in shown
    assert "dartboard" not in first.node.get_content(metadata_mode=MetadataMode.EMBED)
    twice = DartboardPostprocessor(embed_model=WordBag(), k=2).postprocess_nodes(found, query_str=QUERY)
    assert twice[0].node.excluded_llm_metadata_keys == ["dartboard"]


def test_few_blank_equal_and_unquestioned_nodes():
    picker = DartboardPostprocessor(embed_model=WordBag(), k=3)
    assert picker.postprocess_nodes([]) == []
    assert picker.postprocess_nodes([NodeWithScore(node=TextNode(text=" "))], query_str=QUERY) == []
    with pytest.raises(InvalidInputError, match="pass query_bundle or query_str"):
        picker.postprocess_nodes(nodes())
    with pytest.raises(InvalidInputError, match="query is empty"):
        picker.postprocess_nodes(nodes(), query_str="")
    everything = DartboardPostprocessor(embed_model=WordBag(), k=99).postprocess_nodes(
        nodes() + nodes(), query_str=QUERY
    )
    assert len(everything) == 20 and [note["gain"] for note in notes(everything)[10:]] == [0.0] * 10
    scores = [scored.score for scored in everything]
    assert scores[10:] == sorted(scores[:10], reverse=True)
    words = [NodeWithScore(node=TextNode(text=text)) for text in ("茶は丘で育つ", "чай растёт", "🍵 thé")]
    assert len(picker.postprocess_nodes(words, query_str="茶？")) == 3


def test_scores_and_limits():
    given_nodes = [
        NodeWithScore(node=scored.node, score=float(place)) for place, scored in enumerate(nodes())
    ]

    def picked(**knobs):
        picker = DartboardPostprocessor(embed_model=WordBag(), **knobs)
        return picker.postprocess_nodes(given_nodes, query_str=QUERY)

    assert ids(picked(k=10, use_scores=True, method="top_k")) == list(TEXTS)[::-1]
    assert len(picked(k=5, max_per_source=1)) == 1 and picked(min_similarity=0.999) == []
    given_nodes[1].score = None
    with pytest.raises(InvalidInputError, match="document 'b' has the score None"):
        picked(use_scores=True)
    budget = picked(token_budget=30)
    lengths = [len(scored.node.get_content(metadata_mode=MetadataMode.LLM).split()) for scored in budget]
    assert 0 < sum(lengths) <= 30


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"method": "best"},
        {"embed_model": 3},
        {"vectors": bag_of, "use_node_embeddings": True},
        {"top_n": 3},
    ],
)
def test_wrong_settings_are_refused_at_once(wrong):
    with pytest.raises(ValidationError):
        DartboardPostprocessor(**wrong)


def test_names_of_other_rerankers_are_put_right():
    with pytest.raises(ValidationError, match=r"top_n is called k here: DartboardPostprocessor\(k=3\)"):
        DartboardPostprocessor(top_n=3)


def test_what_is_no_node_is_named():
    with pytest.raises(InvalidInputError, match="document 0 must be a NodeWithScore, got str"):
        DartboardPostprocessor(embed_model=WordBag())._postprocess_nodes(["a"], QueryBundle(QUERY))


def test_a_cut_off_keeps_every_pick_that_is_relevant():
    found = DartboardPostprocessor(embed_model=WordBag(), k=10).postprocess_nodes(nodes(), query_str=QUERY)
    cut = SimilarityPostprocessor(similarity_cutoff=0.3).postprocess_nodes(found, query_str=QUERY)
    relevant = [scored for scored in found if scored.metadata["dartboard"]["similarity"] >= 0.3]
    assert ids(cut) == ids(relevant) and 1 < len(cut) < 10


def test_settings_survive_json():
    new = {"also": [COFFEE], "weights": [1.0, 2.0], "offset": 2, "max_per": {"a": 1}, "prefer": "year"}
    picker = DartboardPostprocessor(k=7, sigma=0.1, embed_model="default", use_node_embeddings=True, **new)
    saved = json.loads(picker.to_json())
    assert saved["class_name"] == "DartboardPostprocessor" and saved["embed_model"] == "default"
    assert DartboardPostprocessor.from_dict(saved).to_dict() == picker.to_dict() == saved
    assert DartboardPostprocessor.from_json(picker.to_json()).embed_model == "default"
    handed_over = DartboardPostprocessor.from_dict(saved, vectors=bag_of, use_node_embeddings=False)
    assert handed_over.vectors is bag_of and handed_over.k == 7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"vectors": bag_of},
            "vectors is a function, which cannot be written down.*use_node_embeddings=True",
        ),
        ({"vectors": lambda nodes: []}, "vectors is a function"),
        ({"embed_model": WordBag()}, "embed_model is a WordBag.*give the model's name"),
        ({"embed_model": Words()}, "embed_model is a Words"),
        ({"method": MMR()}, "method is a MMR.*give the method's name"),
        ({"tokenizer": str.split}, "tokenizer is a method_descriptor.*give the tokenizer's name or file"),
    ],
)
def test_what_cannot_be_written_down_is_never_left_out(settings, message):
    picker = DartboardPostprocessor(k=2, **settings)
    for save in (picker.to_dict, picker.to_json):
        with pytest.raises(ConfigError, match=message):
            save()
    for save in (picker.model_dump, picker.model_dump_json):
        with pytest.raises(PydanticSerializationError, match=message):
            save()


def test_pickles_are_whole_or_refused():
    whole = DartboardPostprocessor(k=2, vectors=bag_of, embed_model="default")
    again = pickle.loads(pickle.dumps(whole))
    assert again.vectors is bag_of and again.embed_model == "default" and again.k == 2
    local = DartboardPostprocessor(
        vectors=lambda given_nodes: bag_of(given_nodes), embed_model=WordBag(), k=1
    )
    with pytest.raises(TypeError, match="vectors is a function that cannot be pickled"):
        pickle.dumps(local)
    assert len(local.postprocess_nodes(nodes(), query_str=QUERY)) == 1, "it works on as before"


def test_a_saved_embedding_does_not_become_the_default_model():
    saved = DartboardEmbedding(WordBag()).to_dict()
    with pytest.raises(ConfigError, match="'WordBag' is not the default model"):
        DartboardEmbedding.from_dict(saved)
    bag = WordBag()
    assert DartboardEmbedding.from_dict(saved, model=bag).model is bag
    assert DartboardEmbedding.from_dict(DartboardEmbedding().to_dict()).model is default_model()


def test_events_are_told():
    class Listener(BaseEventHandler):
        heard: list = []  # noqa: RUF012 - a field of a pydantic model

        def handle(self, event, **more):
            self.heard.append(event.class_name())

    listener, dispatcher = Listener(), get_dispatcher()
    debug = LlamaDebugHandler(print_trace_on_end=False)
    dispatcher.add_event_handler(listener)
    try:
        DartboardPostprocessor(
            embed_model=WordBag(), k=2, callback_manager=CallbackManager([debug])
        ).postprocess_nodes(nodes(), query_str=QUERY)
    finally:
        dispatcher.event_handlers.remove(listener)
    assert [name for name in listener.heard if "ReRank" in name] == ["ReRankStartEvent", "ReRankEndEvent"]
    assert len(debug.get_event_pairs(CBEventType.RERANKING)) == 1


def test_the_loop_stays_free_while_nodes_are_picked():
    model = Patient()
    picker = DartboardPostprocessor(embed_model=model, k=2)
    found = asyncio.run(while_free(model, picker.apostprocess_nodes(nodes(), query_str=QUERY)))
    assert len(found) == 2


# --- in LlamaIndex's own pipelines


@pytest.mark.parametrize("embed_model", [DartboardEmbedding(), Words()], ids=["ours", "theirs"])
def test_a_query_engine_over_a_vector_store_index(embed_model):
    index = VectorStoreIndex.from_documents(
        [Document(doc_id=id, text=text, metadata={"title": id}) for id, text in TEXTS.items()],
        embed_model=embed_model,
    )
    query_engine = index.as_query_engine(
        llm=MockLLM(),
        similarity_top_k=10,
        node_postprocessors=[DartboardPostprocessor(embed_model=embed_model, k=3)],
    )
    answer = query_engine.query(QUERY)
    assert len(answer.source_nodes) == 3
    check_notes(notes(answer.source_nodes))
    assert all(scored.text in str(answer) for scored in answer.source_nodes)
    assert "title: " in str(answer) and "dartboard" not in str(answer)
    ranked = index.as_retriever(similarity_top_k=10).retrieve(QUERY)
    texts = [scored.node.get_content(metadata_mode=MetadataMode.EMBED) for scored in ranked]
    vectors = np.array(embed_model.get_text_embedding_batch(texts), dtype=np.float32)
    query = np.array(embed_model.get_query_embedding(QUERY), dtype=np.float32)
    expected = select(vectors, query, k=3, texts=texts)
    assert ids(answer.source_nodes) == [ranked[at].node.node_id for at in expected.indices]
    again = asyncio.run(query_engine.aquery(QUERY))
    assert ids(again.source_nodes) == ids(answer.source_nodes)


def test_a_vector_store_that_gives_no_embeddings_is_an_error():
    index = VectorStoreIndex.from_documents(
        [Document(text=text) for text in TEXTS.values()], embed_model=Words()
    )
    query_engine = index.as_query_engine(
        llm=MockLLM(), node_postprocessors=[DartboardPostprocessor(use_node_embeddings=True)]
    )
    with pytest.raises(InvalidInputError, match="has no vector"):
        query_engine.query(QUERY)


def test_the_default_model_as_an_embedding():
    ours = DartboardEmbedding(embed_batch_size=4)
    assert ours.model_name == "all-MiniLM-L6-v2" and ours.class_name() == "DartboardEmbedding"
    assert ours.model is default_model()
    assert np.allclose(ours.get_query_embedding("tea"), default_model().encode_query("tea"))
    assert np.allclose(ours.get_text_embedding_batch(["tea", "cup"])[0], ours.get_text_embedding("tea"))

    async def alike():
        query, text = await ours.aget_query_embedding("tea"), await ours.aget_text_embedding("tea")
        return query, text, await ours.aget_text_embedding_batch(["tea", "cup"])

    query, text, batch = asyncio.run(alike())
    assert query == ours.get_query_embedding("tea") and text == ours.get_text_embedding("tea")
    assert np.allclose(batch[0], text) and len(batch) == 2


def test_copies_that_differ_in_metadata_only_are_one():
    """LlamaIndex shows a node's metadata to the model; near-duplicates are found without it."""
    text = (
        "Consumers fall behind, as a rule, because each message takes too long to handle: compare handler "
        "time with poll time, fix the slow queries and put a timeout on every call."
    )
    nodes = [
        NodeWithScore(node=TextNode(text=text, metadata={"version": version}))
        for version in ("29.7", "30.10", "30.4")
    ]
    picks = DartboardPostprocessor(k=1, prefer="version", embed_model="default").postprocess_nodes(
        nodes, query_str="why are consumers slow"
    )
    assert picks[0].node.metadata["version"] == "30.10"
    both = DartboardPostprocessor(k=3, min_gain_share=0.01, embed_model="default").postprocess_nodes(
        nodes, query_str="why are consumers slow"
    )
    assert len(both) == 1
