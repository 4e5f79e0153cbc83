"""What a pick stands for is the same through every door: what it covers best, itself among it."""

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import pytest
from haystack import Document as HaystackDocument
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from dartboard import select
from dartboard.integrations.haystack import DartboardRanker
from dartboard.integrations.langchain import DartboardCompressor
from dartboard.integrations.llama_index import DartboardPostprocessor
from dartboard.integrations.mcp import tools
from dartboard.integrations.mcp.answers import select_text
from dartboard.integrations.mcp.arguments import SelectArguments
from dartboard.integrations.mcp.index import OpenIndex
from dartboard.search_options import SearchOptions
from tests.integrations.samples import cloud
from tests.tea import QUERY

VECTORS, ASKED = cloud(3, 40)
K = 4
PLACES = [(f"d{place}", vector.tolist()) for place, vector in enumerate(VECTORS)]


class Fixed(Embeddings):
    """Any query is the one that is asked."""

    def embed_query(self, text):
        return ASKED.tolist()

    def embed_documents(self, texts):
        raise AssertionError("documents carry their vectors")


def by_langchain():
    given = [Document(page_content=id, id=id, metadata={"embedding": vector}) for id, vector in PLACES]
    compressor = DartboardCompressor(vector_field="embedding", embeddings=Fixed(), k=K)
    return [found.metadata["dartboard"] for found in compressor.compress_documents(given, QUERY)]


def by_llama_index():
    given = [NodeWithScore(node=TextNode(id_=id, text=id, embedding=vector)) for id, vector in PLACES]
    picker = DartboardPostprocessor(use_node_embeddings=True, k=K)
    bundle = QueryBundle(QUERY, embedding=ASKED.tolist())
    return [found.metadata["dartboard"] for found in picker.postprocess_nodes(given, query_bundle=bundle)]


def by_haystack():
    given = [HaystackDocument(id=id, content=id, embedding=vector) for id, vector in PLACES]
    ranker = DartboardRanker(use_document_embeddings=True)
    found = ranker.run(QUERY, given, top_k=K, query_embedding=ASKED.tolist())
    return [document.meta["dartboard"] for document in found["documents"]]


@pytest.mark.parametrize("door", [by_langchain, by_llama_index, by_haystack])
def test_notes_say_what_the_selection_says(door):
    expected = select(VECTORS, ASKED, k=K)
    stands = [[f"d{at}" for at in some] for some in expected.stands_for]
    assert [note["stands_for"] for note in door()] == stands
    assert [note["stands_for_count"] for note in door()] == [len(some) for some in stands]


def test_the_frame_the_table_and_the_tool_say_it_too(tmp_path):
    found = select(VECTORS, ASKED, k=K)
    stands = [some.tolist() for some in found.stands_for]
    assert all(pick in some for pick, some in zip(found, stands, strict=True)) and max(map(len, stands)) > 1
    assert found.to_frame()["stands_for"].tolist() == stands
    asked = SelectArguments(query_vector=ASKED.tolist(), vectors=VECTORS.tolist(), k=K)
    answer = tools.select(OpenIndex(str(tmp_path / "none.dartboard")), SearchOptions(), asked)
    assert [pick.stands_for for pick in answer.picks] == stands
    for shown in (repr(found).splitlines()[2:], select_text(answer).splitlines()[1:]):
        for line, some in zip(shown, stands, strict=False):
            assert ("itself and " in line) is (len(some) > 1), line
