"""How far documents are read, and those told apart that begin alike."""

import numpy as np
import pytest
from haystack import Document as HaystackDocument
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode

from dartboard.embeddings import default_model
from dartboard.integrations.document_vectors import embed_documents
from dartboard.integrations.haystack import DartboardRanker
from dartboard.integrations.langchain import DartboardCompressor
from dartboard.integrations.llama_index import DartboardPostprocessor
from tests.models import WordBag

START = "Tea grows on hills, where nights are cool and mornings are full of mist. " * 40
HARBOUR = "Ships leave the harbour with the tide, and the cranes stand still at night."
STARS = "A telescope shows that the spiral galaxy has two bright arms of young stars."


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize("texts", [[START + HARBOUR, START + STARS], [START + STARS, START + HARBOUR, "tea"]])
def test_texts_that_differ_only_beyond_what_is_read_are_told_apart(texts):
    model = default_model()
    cut = model.encode_documents(texts)
    assert cosine(cut[0], cut[1]) > 0.999999
    vectors, lengths = embed_documents(model, texts)
    assert cosine(vectors[0], vectors[1]) < 0.9
    assert [length.tokens for length in lengths] == model.count_tokens(texts)
    assert all(256 < length.read < length.tokens for length in lengths[:2])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    stars = model.encode_query("bright stars of a galaxy")
    at = texts.index(START + STARS)
    assert cosine(vectors[at], stars) > cosine(vectors[1 - at], stars)


def test_texts_that_begin_alike_twice_are_told_apart_too():
    texts = [START + HARBOUR + START + HARBOUR, START + HARBOUR + START + STARS, START + STARS]
    vectors, _ = embed_documents(default_model(), texts)
    apart = [cosine(vectors[a], vectors[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert max(apart) < 0.99


def test_a_text_that_another_only_continues_keeps_its_vector():
    texts = [START, START + STARS, START + STARS + " "]
    vectors, lengths = embed_documents(default_model(), texts)
    assert np.allclose(vectors[0], default_model().encode_documents([START])[0], atol=1e-5)
    assert cosine(vectors[0], vectors[1]) < 0.95 and cosine(vectors[1], vectors[2]) > 0.999
    assert lengths[0].read == default_model().max_tokens


@pytest.mark.parametrize("ends", [("", " "), (" \n", "  ")])
def test_blanks_at_the_end_tell_nothing_apart(ends):
    vectors, _ = embed_documents(default_model(), [START + end for end in ends])
    assert cosine(*vectors) > 0.999999


def test_texts_without_spaces_are_told_apart():
    start = "茶は丘で育つ夜は涼しく" * 60
    vectors, _ = embed_documents(default_model(), [start + "船が港を出る", start + "銀河の星が光る"])
    assert cosine(*vectors) < 0.99


def test_other_texts_get_the_models_own_vectors():
    texts = [START + HARBOUR, STARS + START, "tea", HARBOUR]
    vectors, lengths = embed_documents(default_model(), texts)
    assert np.array_equal(vectors, default_model().encode_documents(texts))
    assert [length.read for length in lengths] == [min(n, 256) for n in default_model().count_tokens(texts)]


def test_a_model_that_counts_no_tokens_says_nothing_of_them():
    vectors, lengths = embed_documents(WordBag(), ["tea on hills", "cups"])
    assert lengths is None and np.array_equal(vectors, WordBag().encode(["tea on hills", "cups"]))
    (found,) = DartboardCompressor(embeddings=WordBag()).compress_documents(
        [Document(page_content="tea")], "tea?"
    )
    assert "tokens" not in found.metadata["dartboard"] and "tokens_read" not in found.metadata["dartboard"]


def langchain(texts):
    given = [Document(page_content=text) for text in texts]
    found = DartboardCompressor(k=2, min_gain_share=0.001).compress_documents(given, "Where does tea grow?")
    return [document.metadata["dartboard"] for document in found]


def llama_index(texts):
    given = [NodeWithScore(node=TextNode(text=text)) for text in texts]
    picker = DartboardPostprocessor(k=2, min_gain_share=0.001)
    found = picker.postprocess_nodes(given, query_str="Where does tea grow?")
    return [scored.metadata["dartboard"] for scored in found]


def haystack(texts):
    given = [HaystackDocument(content=text) for text in texts]
    ranker = DartboardRanker(top_k=2, min_gain_share=0.001)
    found = ranker.run("Where does tea grow?", given)["documents"]
    return [document.meta["dartboard"] for document in found]


@pytest.mark.parametrize("notes_of", [langchain, llama_index, haystack])
def test_notes_say_how_far_a_document_was_read(notes_of):
    notes = notes_of([START + HARBOUR, START + STARS])
    assert len(notes) == 2, "one of two documents that differ was left out as a copy"
    for note in notes:
        assert note["tokens"] > 600 and 256 < note["tokens_read"] < note["tokens"]
    (short,) = notes_of(["Tea grows on hills."])
    assert short["tokens"] == short["tokens_read"] == 7
