"""LlamaIndex: the vectors of its indexes, its engines and filters, saving, and embeddings."""

import copy
import pickle

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from pydantic import PrivateAttr, ValidationError

from dartboard import default_model, select
from dartboard.engine import Engine, index_paths
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.llama_index import (
    DartboardEmbedding,
    DartboardPostprocessor,
    DartboardRetriever,
    from_llama_index,
)
from dartboard.selection import MMR
from dartboard.stores import parse_filter
from tests import tea
from tests.models import WordBag
from tests.tea import QUERY, TEXTS


class Bag(BaseEmbedding):
    """Counts the texts that it is given."""

    _texts: list = PrivateAttr(default_factory=list)

    def _get_query_embedding(self, query):
        return WordBag().encode([query])[0].tolist()

    def _get_text_embedding(self, text):
        self._texts.append(text)
        return WordBag().encode([text])[0].tolist()

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


def nodes():
    return [TextNode(id_=id, text=text) for id, text in TEXTS.items()]


def expected(k=3):
    found = select(WordBag().encode(list(TEXTS.values())), WordBag().encode([QUERY])[0], k=k)
    return [list(TEXTS)[at] for at in found.indices]


def test_the_vectors_of_the_index_are_used():
    bag = Bag()
    index = VectorStoreIndex(nodes(), embed_model=bag)
    bag._texts.clear()
    picker = DartboardPostprocessor(k=3, index=index)
    engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=10, node_postprocessors=[picker])
    found = engine.query(QUERY).source_nodes
    assert [one.node_id for one in found] == expected() and bag._texts == []
    for one in found:
        note = one.metadata["dartboard"]
        assert note["vector_source"] == "given" and one.score == note["score"]
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            assert "dartboard" not in one.node.get_content(mode)
    strangers = [NodeWithScore(node=TextNode(text="tea needs rain"))]
    assert len(picker.postprocess_nodes(strangers, query_str=QUERY)) == 1 and bag._texts == ["tea needs rain"]


def test_metadata_are_embedded_and_do_not_make_copies_differ():
    bag = Bag()
    same = [
        NodeWithScore(node=TextNode(text="tea grows on hills", metadata={"file": name}))
        for name in ("1.md", "2.md")
    ]
    found = DartboardPostprocessor(k=1, embed_model=bag).postprocess_nodes(same, query_str=QUERY)
    assert sorted(bag._texts) == ["file: 1.md\n\ntea grows on hills", "file: 2.md\n\ntea grows on hills"]
    assert found[0].metadata["dartboard"]["stands_for_count"] == 2
    counted = DartboardPostprocessor(token_budget=16, tokenizer=len, embed_model=bag)
    assert counted.postprocess_nodes(same, query_str=QUERY) == []  # the budget counts what a model reads


def test_rewritten_questions_and_missing_ones():
    scored = [NodeWithScore(node=node) for node in nodes()]
    picker = DartboardPostprocessor(k=1, embed_model=Bag())
    bundle = QueryBundle("?", custom_embedding_strs=["how is coffee roasted", "coffee is roasted dark"])
    assert picker.postprocess_nodes(scored, query_bundle=bundle)[0].node_id == "f"
    with pytest.raises(InvalidInputError, match="question"):
        picker.postprocess_nodes(scored)


def test_settings_are_saved_and_objects_handed_over_again():
    picker = DartboardPostprocessor(
        k=3, method="mmr", sigma=0.2, also=["why"], embed_model="default", metadata_key="w"
    )
    for again in (
        DartboardPostprocessor.from_dict(picker.to_dict()),
        DartboardPostprocessor.from_json(picker.to_json()),
        pickle.loads(pickle.dumps(picker)),
        copy.deepcopy(picker),
    ):
        assert again.to_dict() == picker.to_dict() and again.options == picker.options
    for wrong in ({"embed_model": Bag()}, {"vectors": len}, {"method": MMR(0.1)}, {"tokenizer": len}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            DartboardPostprocessor(**wrong).to_dict()
    for wrong in ({"vectors": len, "use_node_embeddings": True}, {"index": 3}):
        with pytest.raises(ValidationError):
            DartboardPostprocessor(**wrong)


def test_a_retriever_in_a_query_engine(tmp_path):
    (tmp_path / "tea.md").write_text("# Tea\n\n" + "\n\n".join(TEXTS.values()))
    url = str(tmp_path / "tea.dartboard")
    with Engine.open(url) as engine:
        index_paths(engine, tmp_path / "tea.md")
    for merge in (False, True):
        retriever = DartboardRetriever.open(url, metadata_key="why", merge=merge)
        answer = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query(QUERY)
        read = answer.source_nodes[0].node.get_content(MetadataMode.LLM)
        assert "tea.md" in read and not {"why", "content_hash", "chunk_ids"} & set(
            read.replace(":", "").split()
        )
        retriever.engine.close()


FILTERS = [
    ("number >= 3", [("number", ">=", 3)], "and"),
    ('source = "True.md" or number < 2', [("source", "==", "True.md"), ("number", "<", 2)], "or"),
    ("not (number > 3 or number = 1)", [("number", ">", 3), ("number", "==", 1)], "not"),
    ("number in [1, 2]", [("number", "in", [1, 2])], "and"),
    ("not number in [1, 2]", [("number", "nin", [1, 2])], "and"),
    ('tags = "tea" and tags = "a"', [("tags", "all", ["tea", "a"])], "and"),
    ('tags = "a"', [("tags", "contains", "a")], "and"),
    ("not lost exists", [("lost", "is_empty", None)], "and"),
]


@pytest.mark.parametrize(("text", "parts", "condition"), FILTERS)
def test_filters(text, parts, condition):
    filters = MetadataFilters(
        filters=[
            MetadataFilter(key=key, operator=FilterOperator(how), value=value) for key, how, value in parts
        ],
        condition=FilterCondition(condition),
    )
    engine, same = tea.filled(), parse_filter(text)
    everything = engine.collection.get(list(TEXTS))
    wanted = {one.id for one in everything if same.matches(one.metadata, one.id)}
    made = from_llama_index(filters)
    assert {one.id for one in everything if made.matches(one.metadata, one.id)} == wanted
    if "lost" not in text:
        found = DartboardRetriever(engine, k=10, filters=filters).retrieve(QUERY)
        assert {one.node_id for one in found} == wanted


def test_filters_that_say_what_an_index_cannot_are_errors():
    match = MetadataFilter(key="a", operator=FilterOperator.TEXT_MATCH, value="b")
    for wrong in (MetadataFilters(filters=[match]), {"a": 1}):
        with pytest.raises(InvalidInputError):
            DartboardRetriever(tea.filled(), filters=wrong)
    with pytest.raises(ConfigError):
        DartboardRetriever(tea.filled(), filters=MetadataFilters(filters=[]), where="a = 1")


def test_embeddings_travel_and_copy_and_take_blank_texts():
    made = DartboardEmbedding()
    vector = made.get_query_embedding(QUERY)
    for again in (
        copy.deepcopy(made),
        pickle.loads(pickle.dumps(made)),
        DartboardEmbedding.from_dict(made.to_dict()),
    ):
        assert again.get_query_embedding(QUERY) == vector
    assert copy.deepcopy(DartboardEmbedding(default_model())).model is default_model()
    assert len(made.get_text_embedding_batch(["tea", " ", ""])) == 3
    found = VectorStoreIndex(nodes(), embed_model=made).as_retriever(similarity_top_k=1).retrieve(QUERY)
    assert found[0].node_id in "abc"
