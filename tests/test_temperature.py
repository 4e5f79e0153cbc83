"""The temperature of pair scores: recovered where it is known, kept where it helps, used by retrieval."""

import json

import numpy as np
import pytest
import scipy.special

from dartboard.calibration import Calibration, Estimate, calibrate, calibrate_temperature, labelled_by
from dartboard.calibration.result import Temperature, scorer_name
from dartboard.core import DartboardConfig, DartboardRetriever
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.types import Chunk, Dataset
from tests.models import SharedWords, WordBag, chunks_of

TRUE = 2.5


class Planned:
    """Scores that were drawn beforehand, by query and text."""

    bounds = (-12.0, 12.0)
    model_name = "planned"

    def __init__(self, table):
        self.table = table
        self.asked = 0

    def score(self, query, passages):
        self.asked += len(passages)
        return np.array([self.table[query][passage] for passage in passages])

    def score_matrix(self, passages):
        raise AssertionError("the hybrid variant never asks for pairs of passages")


def drawn(queries=120, chunks=40, temperature=TRUE, copies=0, seed=0):
    """Queries whose target was drawn from ``softmax(score / temperature)``."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((chunks, 24)).astype(np.float32)
    corpus = [
        Chunk(f"c{i:02d}~{copy}", f"text {i}", vectors[i] + 0.01 * copy, {"base_id": f"c{i:02d}~0"})
        for i in range(chunks)
        for copy in range(copies + 1)
    ]
    asked = rng.standard_normal((queries, 24)).astype(np.float32)
    table, truth = {}, {}
    for query in range(queries):
        scores = 4 * rng.standard_normal(chunks)
        table[f"question {query}"] = {f"text {i}": score for i, score in enumerate(scores)}
        target = rng.choice(chunks, p=scipy.special.softmax(scores / temperature))
        truth[f"question {query}"] = [f"c{target:02d}~0"]
    dataset = Dataset(
        name="drawn",
        chunks=corpus,
        queries=list(table),
        query_ids=list(table),
        ground_truth=truth,
        metadata={"query_embeddings": asked},
    )
    return dataset, Planned(table)


def test_a_known_temperature_is_recovered_and_tried_out():
    dataset, scorer = drawn()
    copied, _ = drawn(copies=3)
    seen = []
    found = calibrate_temperature(dataset, scorer, copied, triage_k=40, progress=seen.append)
    assert found.estimate.low <= TRUE <= found.estimate.high
    assert found.estimate.pairs == 120 and found.estimate.settled
    assert set(found.held_out) == {"fitted", "auto"}
    assert all(set(by) == {"as it is", "with near-copies"} for by in found.held_out.values())
    mean = {name: np.mean(list(by.values())) for name, by in found.held_out.items()}
    assert (found.kind == "fitted") == (mean["fitted"] > mean["auto"] and found.p_value < 0.05)
    assert found.kind == "auto" and "could be chance (p = " in found.reason, ".48 against .46 is no win"
    assert found.value_or_auto() == (found.estimate.value if found.kind == "fitted" else "auto")
    assert seen == list(range(1, 181)), "every query, then the held-out half with copies"


def test_near_copies_with_the_same_text_are_scored_once():
    copied, scorer = drawn(queries=30, copies=3)
    calibrate_temperature(copied, scorer, triage_k=160)
    assert scorer.asked == 30 * 40


def test_recall_on_held_out_queries_is_that_of_the_retriever():
    dataset, scorer = drawn(queries=40)
    found = calibrate_temperature(dataset, scorer, k=5, triage_k=40)
    held = np.random.default_rng(0).permutation(40)[20:]

    class Asked(WordBag):
        def encode(self, texts, batch_size=32):
            row = dataset.queries.index(texts if isinstance(texts, str) else texts[0])
            return dataset.metadata["query_embeddings"][[row]]

    retriever = DartboardRetriever(DartboardConfig(triage_k=40), Asked(24), cross_encoder=scorer)
    hits = [
        any(chunk.id in dataset.ground_truth[query] for chunk in retriever.retrieve(query, dataset.chunks))
        for query in (dataset.queries[i] for i in held)
    ]
    assert found.held_out["auto"]["as it is"] == pytest.approx(np.mean(hits))


def test_few_pairs_keep_the_spread_of_the_scores():
    dataset, scorer = drawn(queries=8)
    found = calibrate_temperature(dataset, scorer, triage_k=40)
    assert found.kind == "auto" and "only 8 pairs" in found.reason and found.value_or_auto() == "auto"


def test_pairs_that_contradict_the_scores_keep_it_too():
    dataset, scorer = drawn(queries=60, temperature=1e6)
    found = calibrate_temperature(dataset, scorer, triage_k=40)
    assert found.kind == "auto"


def test_arguments_are_checked():
    dataset, scorer = drawn(queries=2)
    with pytest.raises(ConfigError, match="triage_k >= k"):
        calibrate_temperature(dataset, scorer, k=9, triage_k=3)


def stored(kind="fitted", scorer=None, model=""):
    estimate = Estimate(value=0.7, low=0.5, high=0.9, pairs=50)
    temperature = Temperature(
        kind=kind, reason="measured", estimate=estimate, scorer=scorer_name(scorer or SharedWords())
    )
    return Calibration(
        kind="default", reason="r", sigma=estimate, divisor=estimate, model=model, temperature=temperature
    )


TEXTS = ["red fox runs", "red fox sleeps", "blue whale swims", "green tree grows", "red red fox"]


def test_retrieval_uses_the_temperature_under_auto():
    def search(calibration, sigma="auto"):
        config = DartboardConfig(sigma=sigma, top_k=3)
        retriever = DartboardRetriever(
            config, WordBag(), cross_encoder=SharedWords(), calibration=calibration
        )
        return retriever.search("red fox", chunks_of(TEXTS)).metadata

    calibrated = search(stored())
    assert (calibrated["sigma"], calibrated["sigma_source"]) == (0.7, "calibration")
    assert calibrated["gain"] == search(None, sigma=0.7)["gain"]
    given = search(stored(), sigma=0.2)
    assert (given["sigma"], given["sigma_source"]) == (0.2, "given")
    assert search(stored("auto"))["sigma_source"] == search(None)["sigma_source"] == "scores"


def test_the_temperature_of_another_scorer_is_refused():
    planned = drawn(queries=2)[1]
    with pytest.raises(ConfigError, match="fitted to SharedWords"):
        DartboardRetriever(DartboardConfig(), WordBag(), cross_encoder=planned, calibration=stored())
    cosine = DartboardConfig(reranker_type="cosine")
    assert DartboardRetriever(cosine, WordBag(), calibration=stored()).variant == "cosine"


def test_it_is_kept_with_the_calibration(tmp_path):
    dataset, scorer = drawn(queries=40)
    labelled = labelled_by(dataset)
    before = calibrate(labelled, triage_k=40)
    assert Calibration.from_json(before.to_json()) == before
    both = Calibration(
        **{name: getattr(before, name) for name in Calibration.__dataclass_fields__ if name != "temperature"},
        temperature=calibrate_temperature(dataset, scorer, triage_k=40),
    )
    both.save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json") == both
    plain = json.loads((tmp_path / "c.json").read_text())
    for damage in (
        {"kind": "loud"},
        {"sigma": plain["sigma"] | {"value": "wide"}},
        {"sigma": plain["sigma"] | {"low": -1.0}},
        {"temperature": {"kind": "fitted"}},
    ):
        with pytest.raises(InvalidInputError, match=r"kind must be|is not a calibration"):
            Calibration.from_json(plain | damage)
