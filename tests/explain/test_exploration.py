"""One question from all sides, beside what a search gives."""

import json

import numpy as np
import pytest
from pydantic import TypeAdapter

from dartboard.deadline import deadline
from dartboard.errors import DeadlineError, InvalidInputError
from dartboard.evaluation.metrics import pairwise_diversity
from dartboard.explain.exploration import CachedScorer, Exploration, explore, sigma_range
from dartboard.explain.picked_sets import redundancy
from dartboard.search_options import SearchOptions
from tests.models import SharedWords
from tests.tea import QUERY, TEXTS, filled

COPIED = {**TEXTS, "b2": TEXTS["b"]}


@pytest.mark.parametrize("retriever", ["dense", "bm25", "hybrid", "rrf"])
def test_picks_are_those_of_a_search(retriever):
    engine = filled(texts=COPIED, retriever=retriever)
    found = explore(engine, QUERY, k=4).to_json()
    ids = [each["id"] for each in found["candidates"]]
    for method, facts in found["methods"].items():
        result = engine.search(QUERY, k=4, method=method)
        assert [ids[pick] for pick in facts["picks"]] == [chunk.id for chunk in result.chunks]
        if method != "top_k":  # whose search weighs equal scores by id; here all are measured alike
            assert facts["coverage"] == pytest.approx(result.metadata["coverage"][-1])
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("reranker", ["cosine", "hybrid", "crossencoder"])
def test_every_reranker(reranker):
    engine = filled(texts=COPIED, pair_scorer=SharedWords())
    found = explore(engine, QUERY, k=3, reranker=reranker).to_json()
    ids = [each["id"] for each in found["candidates"]]
    result = engine.search(QUERY, k=3, reranker=reranker)
    assert [ids[step["pick"]] for step in found["steps"]] == [chunk.id for chunk in result.chunks]
    assert found["sigma"]["value"] == pytest.approx(result.metadata["sigma"])
    assert found["sigma"]["source"] == result.metadata["sigma_source"]
    assert found["reranker_type"] == reranker


def test_a_filter_without_a_match_gives_an_empty_board():
    found = explore(filled(texts=COPIED), QUERY, where="number > 100").to_json()
    assert found["candidates"] == [] and found["steps"] == [] and found["layout"] is None
    assert found["methods"]["dartboard"]["picks"] == []
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    "options",
    [
        {"must_include": ["c"]},
        {"exclude": ["a", "b"]},
        {"min_similarity": 0.3},
        {"max_per_source": 1},
        {"max_per_source": 2, "source_field": "number"},
        {"min_gain_share": 0.5},
        {"token_budget": 12, "tokenizer": str.split},
    ],
)
def test_every_option_of_a_search(options):
    engine = filled(texts=COPIED)
    asked = SearchOptions(**{"k": 4, **options})
    found = explore(engine, QUERY, asked).to_json()
    ids = [each["id"] for each in found["candidates"]]
    result = engine.search(QUERY, asked)
    assert [ids[step["pick"]] for step in found["steps"]] == [chunk.id for chunk in result.chunks]
    assert sum(each["probability"] for each in found["candidates"]) == pytest.approx(1.0)
    again = explore(engine, QUERY, **{"k": 4, **options}).to_json()
    assert found == again | {"seconds": found["seconds"]}
    json.dumps(found, allow_nan=False)


def test_the_three_methods_are_compared_whatever_the_method_asked_for():
    engine = filled(texts=COPIED)
    asked = SearchOptions(k=3, method="top_k")
    assert (
        explore(engine, QUERY, asked).to_json()["methods"] == explore(engine, QUERY, k=3).to_json()["methods"]
    )


def test_an_option_that_does_not_exist():
    with pytest.raises(TypeError, match=r"explore\(\) takes no 'top_k': did you mean 'k'"):
        explore(filled(), QUERY, top_k=3)


def test_an_empty_query_is_refused():
    with pytest.raises(InvalidInputError, match="query is empty"):
        explore(filled(texts=COPIED), " ")


REVISED = {
    f"{name}{version}": f"{text} tea cup {said}"
    for name, text in {
        f"p{i}": " ".join(f"word{i}x{j}" for j in range(30)) + (" steep water" if i < 8 else "")
        for i in range(16)
    }.items()
    for version, said in enumerate(("again", "anew", "afresh", "indeed", "truly"))
}
"""Sixteen texts, each in five versions that differ by a word."""


@pytest.mark.parametrize("retriever", ["dense", "hybrid"])
def test_near_copies_are_set_aside_as_a_search_does(retriever):
    engine = filled(texts=REVISED, retriever=retriever)
    found = explore(engine, "steep tea in water", k=6).to_json()
    ids = [each["id"] for each in found["candidates"]]
    result = engine.search("steep tea in water", k=6)
    assert found["near_copies"] == result.metadata["near_copies"] == 64
    picked = [ids[step["pick"]] for step in found["steps"]]
    assert picked == [chunk.id for chunk in result.chunks]
    assert len({name[:-1] for name in picked}) == 6
    weights = [each["probability"] for each in found["candidates"]]
    assert sum(weight > 0 for weight in weights) == 16 and sum(weights) == pytest.approx(1.0)
    at_auto = found["sweep"]["sigmas"].index(found["sigma"]["auto"])
    assert found["sweep"]["picks"][at_auto] == [step["pick"] for step in found["steps"]]
    for step in found["steps"]:
        assert {ids[i] for i in step["stands_for"]} >= {f"{ids[step['pick']][:-1]}{v}" for v in range(5)}
        assert step["gains"][step["pick"]] == pytest.approx(step["gain"])
    by_hand = explore(engine, "steep tea in water", k=6, sigma=0.05).to_json()
    assert by_hand["near_copies"] == 64, "near-duplicates are removed at any sigma"


def test_seen_ids_not_vectors():
    engine = filled(texts=COPIED)
    with pytest.raises(InvalidInputError, match="ids of chunks in seen"):
        explore(engine, QUERY, seen=engine.model.encode_documents(["tea"]))
    with pytest.raises(InvalidInputError, match="no chunk 'zz' in the collection"):
        explore(engine, QUERY, seen=["zz"])


@pytest.mark.parametrize("reranker", ["cosine", "hybrid", "crossencoder"])
def test_several_questions_after_what_was_seen(reranker):
    engine = filled(texts=COPIED, pair_scorer=SharedWords())
    options = {"k": 4, "also": ["how is coffee roasted", "cups of clay"], "seen": ["b"], "reranker": reranker}
    found = explore(engine, QUERY, **options).to_json()
    result = engine.search(QUERY, **options)
    ids = [each["id"] for each in found["candidates"]]
    chosen = found["methods"]["dartboard"]
    assert [ids[pick] for pick in chosen["picks"]] == [chunk.id for chunk in result.chunks]
    assert chosen["serves"] == result.metadata["serves"] and len(set(chosen["serves"])) > 1
    assert chosen["covered_before"] == pytest.approx(result.metadata["covered_before"])
    assert found["relevance"] == pytest.approx(result.metadata["relevance"])
    assert sum(each["probability"] for each in found["candidates"]) == pytest.approx(1.0)
    json.dumps(found, allow_nan=False)


def test_everything_was_seen():
    found = explore(filled(), QUERY, seen=list(TEXTS)).to_json()
    assert len(found["candidates"]) == len(TEXTS) == len(found["seen"]) and found["steps"] == []
    chosen = found["methods"]["dartboard"]
    assert chosen["picks"] == [] and chosen["covered_before"] == pytest.approx(1.0)
    json.dumps(found, allow_nan=False)


def test_nothing_found_for_several_questions():
    found = explore(filled(), QUERY, also=["clay"], where="number > 100").to_json()
    assert found["methods"]["mmr"]["serves"] == [] and len(found["questions"]) == 2
    assert found["methods"]["mmr"]["question_coverage"] == [0.0, 0.0] and found["seen_cover"] == []


def test_the_preferred_copy_has_the_weight_of_its_group():
    engine = filled(texts=REVISED, retriever="dense")
    found = explore(engine, "steep tea in water", k=6, prefer="number").to_json()
    picked = [found["candidates"][step["pick"]]["id"] for step in found["steps"]]
    assert picked == [chunk.id for chunk in engine.search("steep tea in water", k=6, prefer="number").chunks]
    assert {name[-1] for name in picked} == {"4"}, "the last of five versions"
    weights = {each["id"]: each["probability"] for each in found["candidates"]}
    assert sum(weights.values()) == pytest.approx(1.0)
    plain = explore(engine, "steep tea in water", k=6).to_json()
    expected = {each["id"][:-1]: each["probability"] for each in plain["candidates"] if each["probability"]}
    assert {name[:-1]: weight for name, weight in weights.items() if weight} == pytest.approx(expected)


def test_redundancy_is_the_mean_of_the_nearest_cosines():
    cosines = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]])
    assert redundancy(cosines) == pytest.approx((0.9 + 0.9 + 0.2) / 3)
    assert redundancy(np.ones((1, 1))) == redundancy(np.zeros((0, 0))) == 0.0


def test_sets_describe_themselves():
    engine = filled(texts=COPIED, retriever="dense")
    found = explore(engine, QUERY, k=4)
    for name, each in found.methods.items():
        chunks = engine.search(QUERY, k=4, method=name).chunks
        assert each.pairwise_diversity == pytest.approx(pairwise_diversity(chunks), abs=1e-6)
        assert each.redundancy == pytest.approx(redundancy(np.array(each.matrix)))
        assert each.tokens == sum(found.candidates[pick].tokens for pick in each.picks)
    top, chosen = found.methods["top_k"], found.methods["dartboard"]
    assert found.overlap["top_k|dartboard"] == len({*top.picks} & {*chosen.picks})


def test_the_sweep_selects_at_each_sigma():
    engine = filled(texts=COPIED, retriever="dense")
    found = explore(engine, QUERY, k=4)
    sigmas = found.sweep.sigmas
    assert sigmas == sorted(sigmas) and len(sigmas) == 25 and found.sigma.auto in sigmas
    assert (sigmas[0], sigmas[-1]) == pytest.approx(sigma_range(found.sigma.auto))
    for sigma, picks in list(zip(sigmas, found.sweep.picks, strict=True))[::6]:
        chunks = engine.search(QUERY, k=4, sigma=sigma).chunks
        assert [found.candidates[pick].id for pick in picks] == [chunk.id for chunk in chunks]
    for centre in (1e-5, 3e-5, 4.0, 10.0):
        low, high = sigma_range(centre)
        assert 1e-5 <= low <= centre <= high <= 10.0


def test_an_exploration_ends_with_its_time():
    engine = filled(texts=COPIED)
    with deadline(1e-6), pytest.raises(DeadlineError):  # timing: has to run out
        explore(engine, QUERY)


def test_a_scorer_is_asked_once():
    scorer = SharedWords()
    kept = CachedScorer(scorer)
    for _ in range(3):
        assert kept.score("tea", list(TEXTS)).tolist() == scorer.score("tea", list(TEXTS)).tolist()
        kept.score("tea", list(TEXTS))[:] = 9.0  # whoever gets scores may change them
        assert kept.score_matrix(list(TEXTS)).shape == (10, 10)
    assert kept.bounds == scorer.bounds
    assert [what for what, _ in scorer.asked] == ["score", "score", "matrix", "score", "score"]


def test_pydantic_reads_the_tree_with_its_descriptions():
    found = explore(filled(texts=COPIED), QUERY, k=3)
    adapter = TypeAdapter(Exploration)
    assert json.loads(adapter.dump_json(found)) == json.loads(json.dumps(found.to_json()))
    defined = adapter.json_schema()["$defs"]
    for name in ("ExploredCandidate", "PickedSet", "Step", "SigmaUsed"):
        assert all(field.get("description") for field in defined[name]["properties"].values())
