"""Whether anything relevant was found: the rule, the models it is for, and what a result says."""

import json

import numpy as np
import pytest

from dartboard.config import DartboardConfig
from dartboard.core import DartboardRetriever
from dartboard.embeddings import EmbeddingModel, default_model
from dartboard.engine import Engine
from dartboard.relevance import PROBES, SHARE, SimilarityLevels, assess, known_levels, measure_levels
from dartboard.stores import Record
from dartboard.stores.memory import MemoryStore
from tests.models import WordBag, chunks_of

TEXTS = {
    "rotate": "Rotate the signing keys every ninety days with keyctl rotate.",
    "revoke": "A lost signing key is revoked at once with keyctl revoke.",
    "backup": "Backups of the database run at two in the morning and are kept for a month.",
    "logs": "The log level is set with the option --log-level and defaults to info.",
    "cookbook": "This cookbook has recipes for logging from several threads and processes.",
}
ABOUT_THEM = ["How often are the keys rotated?", "When do backups run?", "How do I log from many threads?"]
ABOUT_OTHERS = ["How do I bake sourdough bread?", "Who won the cup final?", "symptoms of hay fever in spring"]


class Shifted(EmbeddingModel):
    """The default model with one direction added to all: its cosines lie between .7 and 1."""

    name = "shifted"
    embedding_dim = 384

    def encode(self, texts, batch_size=32):
        return default_model().encode(texts, batch_size) + np.full(384, 1.7 / np.sqrt(384), np.float32)


def filled(model):
    engine = Engine(MemoryStore(), model=model, retriever="dense")
    vectors = engine.model.encode_documents(list(TEXTS.values()))
    records = [
        Record(id, text, row, {"kind": "note"})
        for (id, text), row in zip(TEXTS.items(), vectors, strict=True)
    ]
    engine.create().upsert(records)
    return engine


@pytest.mark.parametrize("model", ["default", Shifted()], ids=["default", "shifted"])
def test_only_questions_about_the_texts_find_something_relevant(model):
    engine = filled(model)
    for verdict, questions in {"relevant": ABOUT_THEM, "nothing_relevant": ABOUT_OTHERS}.items():
        for question in questions:
            result = engine.search(question, k=3)
            said = result.metadata["relevance"]
            assert said["verdict"] == verdict, (question, said)
            assert (said["best_similarity"] < said["threshold"]) == bool(said["message"])
            assert len(result) == 3, "no result is hidden"
            assert json.loads(json.dumps(said)) == said


def test_the_levels_of_the_default_model_are_what_it_gives():
    assert known_levels(default_model()) == pytest.approx(measure_levels(default_model()), abs=0.02)


def test_another_model_is_measured_when_a_collection_is_created():
    engine = filled(Shifted())
    stored = engine.collection.manifest.settings["similarity_levels"]
    assert 0.6 < stored["unrelated"] < stored["related"] < 1
    assert engine.similarity_levels == SimilarityLevels(**stored)
    assert "similarity_levels" not in filled("default").collection.manifest.settings


def test_where_nobody_measured_the_model_the_verdict_is_unknown():
    config, model = DartboardConfig(sigma=0.1, top_k=2), WordBag()
    corpus = chunks_of(TEXTS.values(), model)
    said = DartboardRetriever(config, model).search("bread", corpus).metadata["relevance"]
    assert said["verdict"] == "unknown" and said["threshold"] is None and said["message"] == ""
    assert said["best_similarity"] == pytest.approx(
        max(
            np.dot(model.encode_query("bread"), chunk.embedding)
            / np.linalg.norm(model.encode_query("bread"))
            / np.linalg.norm(chunk.embedding)
            for chunk in corpus
        ),
        abs=1e-6,
    )
    measured = DartboardRetriever(config, model, similarity_levels=SimilarityLevels(0.0, 1.0))
    assert measured.search("bread", corpus).metadata["relevance"]["verdict"] == "nothing_relevant"


def test_the_rule_by_hand():
    query, levels = np.array([2.0, 0.0]), SimilarityLevels(0.2, 0.8)
    threshold = 0.2 + SHARE * 0.6
    at = np.array([[0.0, 1.0], [threshold + 0.01, np.sqrt(1 - (threshold + 0.01) ** 2)]])
    above = assess(query, 5.0 * at, levels)
    assert (above["verdict"], above["message"]) == ("relevant", "")
    assert above["best_similarity"] == pytest.approx(above["threshold"] + 0.01)
    below = assess(query, at[:1], levels)
    assert below["verdict"] == "nothing_relevant" and "0.00" in below["message"]
    assert assess(query, at[:1], None)["verdict"] == "unknown"
    nothing = assess(query, np.empty((0, 2)), levels)
    assert (nothing["verdict"], nothing["best_similarity"]) == ("nothing_relevant", None)


def test_a_search_that_finds_no_candidate_says_so():
    said = filled("default").search("When do backups run?", where='kind = "pdf"').metadata["relevance"]
    assert said["verdict"] == "nothing_relevant" and said["best_similarity"] is None


def test_a_model_that_tells_nothing_apart_has_no_levels():
    class Same(WordBag):
        def encode(self, texts, batch_size=32):
            return np.ones((1 if isinstance(texts, str) else len(texts), 32), np.float32)

    assert measure_levels(Same()) is None
    assert len({question for question, _ in PROBES}) == len(PROBES)
