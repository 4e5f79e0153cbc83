"""The retriever of the specification, in its three variants."""

import numpy as np
import pytest

from dartboard import MMR, Chunk, DartboardConfig, DartboardRetriever, default_model, vocab
from dartboard.calibration import Calibration, Estimate
from dartboard.embeddings import LateInteraction
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.pair_scores import rescaled
from dartboard.search_options import SearchOptions
from dartboard.selection import in_order_of
from dartboard.selection.kernel import log_kernel
from dartboard.types import RetrievalResult
from tests import tea
from tests.models import Favourite, SharedWords, WordBag, chunks_of
from tests.tea import QUERY

TEXTS = list(tea.TEXTS.values())
CORPUS = chunks_of(TEXTS)


def retriever(scorer=None, tokens=None, **config):
    return DartboardRetriever(DartboardConfig(**config), WordBag(), tokens, scorer)


def ids(chunks):
    return [chunk.id for chunk in chunks]


@pytest.mark.parametrize("variant", ["cosine", "crossencoder", "hybrid"])
def test_retrieve_in_both_forms(variant):
    dart = retriever(SharedWords(), reranker_type=variant, top_k=4)
    chunks = dart.retrieve(QUERY, CORPUS)
    again, scores = dart.retrieve(QUERY, CORPUS, return_scores=True)
    assert ids(chunks) == ids(again) and len(set(ids(chunks))) == 4
    assert all(isinstance(score, float) and 0 <= score <= 1 for score in scores)
    assert all(chunk in CORPUS for chunk in chunks)


def test_near_copies_are_not_repeated():
    nearest = DartboardConfig(reranker_type="cosine", top_k=3, sigma=0.1)
    picked = DartboardRetriever(nearest, WordBag()).retrieve(QUERY, CORPUS)
    assert len({"tea grows on" in chunk.text for chunk in picked[1:]} - {False}) == 0


def test_hybrid_without_a_scorer_is_cosine_and_says_so():
    plain, hybrid = retriever(reranker_type="cosine"), retriever()
    result = hybrid.search(QUERY, CORPUS)
    assert hybrid.variant == result.metadata["variant"] == "cosine"
    assert ids(result.chunks) == ids(plain.retrieve(QUERY, CORPUS))


def test_crossencoder_without_a_scorer_is_refused():
    with pytest.raises(ConfigError, match="needs a cross_encoder"):
        retriever(reranker_type="crossencoder")


def test_a_query_asks_the_scorer_once_for_all_candidates():
    scorer = SharedWords()
    retriever(scorer, reranker_type="crossencoder").retrieve(QUERY, CORPUS)
    assert scorer.asked == [("matrix", 10), ("score", 10)]
    scorer.asked.clear()
    retriever(scorer, reranker_type="hybrid").retrieve(QUERY, CORPUS)
    assert scorer.asked == [("score", 10)]


@pytest.mark.parametrize("scaling", ["bounds", "minmax", "sigmoid"])
def test_crossencoder_follows_its_formula(scaling):
    scorer = SharedWords()
    dart = retriever(scorer, reranker_type="crossencoder", score_scaling=scaling, sigma=0.3, top_k=5)
    candidates = dart._triage(dart._embed(QUERY), CORPUS)
    texts = [chunk.text for chunk in candidates]
    raw, pairs = scorer.score(QUERY, texts), scorer.score_matrix(texts)
    scale = {
        "bounds": lambda s: s,
        "minmax": lambda s: (s - s.min()) / (s.max() - s.min()),
        "sigmoid": lambda s: 1 / (1 + np.exp(-s)),
    }[scaling]
    to_query, between = 1 - scale(raw), 1 - scale(pairs)
    np.fill_diagonal(between, 0)
    expected = dart._greedy_selection(log_kernel(to_query, 0.3), log_kernel(between, 0.3), 5)
    assert ids(dart.retrieve(QUERY, CORPUS)) == [candidates[i].id for i in expected]


def test_the_papers_bounds_are_used_for_a_scorer_that_has_none():
    class Logits:
        def score(self, query, passages):
            return np.linspace(-11.6, 11.4, len(passages))

        def score_matrix(self, passages):
            return np.full((len(passages),) * 2, -11.6)

    dart = retriever(Logits(), reranker_type="crossencoder", sigma=0.2)
    np.testing.assert_allclose(
        rescaled(np.array([-11.6, -0.1, 11.4, 50.0]), Logits(), "bounds"), [0.0, 0.5, 1.0, 1.0]
    )
    nearest = {c.id for c in dart._triage(WordBag().encode_query(QUERY), CORPUS)[-5:]}
    assert set(ids(dart.retrieve(QUERY, CORPUS))) == nearest


def test_hybrid_follows_its_formula():
    scorer = SharedWords()
    dart = retriever(scorer, sigma=0.2, top_k=4)
    candidates = dart._triage(dart._embed(QUERY), CORPUS)
    scores = scorer.score(QUERY, [c.text for c in candidates])
    _, between = dart._compute_distances(dart._embed(QUERY), candidates)
    logits = scores / 0.2 - np.log(np.exp(scores / 0.2).sum())
    expected = dart._greedy_selection(logits, np.log(1 - between), 4)
    result = dart.search(QUERY, CORPUS)
    assert ids(result.chunks) == [candidates[i].id for i in expected]
    assert result.metadata["sigma"] == 0.2
    assert retriever(scorer).search(QUERY, CORPUS).metadata["sigma_source"] == "scores"


def test_a_flat_scorer_is_no_trouble():
    class Flat(SharedWords):
        def _shared(self, a, b):
            return 0.3

    for variant in ("crossencoder", "hybrid"):
        for scaling in ("bounds", "minmax", "sigmoid"):
            assert (
                len(retriever(Flat(), reranker_type=variant, score_scaling=scaling).retrieve(QUERY, CORPUS))
                == 5
            )


def test_a_scorer_that_fails_is_reported():
    class Broken(SharedWords):
        def _shared(self, a, b):
            return float("nan")

    with pytest.raises(InvalidInputError, match="pair scorer gave NaN"):
        retriever(Broken()).retrieve(QUERY, CORPUS)


def test_triage_is_nearest_first_and_limited():
    dart = retriever(triage_k=6)
    vector = dart._embed(QUERY)
    near = dart._triage(vector, CORPUS)
    cosine = {c.id: c.embedding @ vector / np.linalg.norm(c.embedding) for c in CORPUS}
    assert ids(near) == sorted(cosine, key=lambda i: -cosine[i])[:6]
    assert ids(dart._triage(vector, CORPUS[::-1])) == ids(near)
    same = [Chunk(f"d{i}", "tea", CORPUS[0].embedding) for i in range(30)]
    assert ids(dart._triage(vector, same)) == sorted(ids(same))[:6]


def test_distances_are_scaled_cosine_or_euclidean():
    dart = retriever()
    to_query, between = dart._compute_distances(dart._embed(QUERY), CORPUS)
    assert to_query.shape == (10,) and between.shape == (10, 10)
    assert (between >= 0).all() and (between <= 1).all()
    np.testing.assert_allclose(np.diag(between), 0, atol=1e-9)
    far, _ = retriever(distance="euclidean")._compute_distances(dart._embed(QUERY), CORPUS)
    np.testing.assert_allclose(
        far, [np.linalg.norm(c.embedding - dart._embed(QUERY)) for c in CORPUS], rtol=1e-6
    )


def test_the_private_steps_together_are_retrieve():
    dart = retriever(reranker_type="cosine", sigma=0.15)
    vector = dart._embed(QUERY)
    candidates = dart._triage(vector, CORPUS)
    to_query, between = (log_kernel(d, 0.15) for d in dart._compute_distances(vector, candidates))
    picks = dart._greedy_selection(to_query, between, 5)
    assert [candidates[i].id for i in picks] == ids(dart.retrieve(QUERY, CORPUS))
    for step in range(1, 5):
        score = {
            c: dart._compute_dartboard_score(picks[:step], c, to_query, between)
            for c in range(10)
            if c not in picks[:step]
        }
        assert max(score, key=score.get) == picks[step]


def test_a_score_is_the_log_of_the_objective():
    dart = retriever()
    weights, kernel = np.array([0.2, 0.5, 0.3]), np.array([[1, 0.1, 0.4], [0.1, 1, 0.2], [0.4, 0.2, 1]])
    got = dart._compute_dartboard_score([0], 1, np.log(weights), np.log(kernel))
    assert got == pytest.approx(np.log(0.2 * 1 + 0.5 * 1 + 0.3 * 0.4))
    assert dart._compute_dartboard_score([], 2, np.log(weights), np.log(kernel)) == pytest.approx(
        np.log(0.08 + 0.1 + 0.3)
    )


def test_a_corpus_smaller_than_k():
    assert len(retriever().retrieve(QUERY, CORPUS[:3])) == 3


def test_one_chunk():
    result = retriever().search(QUERY, CORPUS[:1])
    assert ids(result.chunks) == ["c0"] and result.scores == [1.0]
    assert result.metadata["sigma_source"] == "fallback"


def test_identical_chunks():
    same = [Chunk(f"d{i}", "tea", CORPUS[0].embedding) for i in range(30)]
    result = retriever().search(QUERY, same)
    assert ids(result.chunks) == ["d0", "d1", "d10", "d11", "d12"]
    assert result.scores == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert len(result.metadata["stands_for"][0]) == 30


@pytest.mark.parametrize("query", ["", "  \n", None, 7])
def test_an_empty_query_is_refused(query):
    with pytest.raises(ValueError, match="query"):
        retriever().retrieve(query, CORPUS)


def test_an_empty_corpus_is_refused():
    with pytest.raises(ValueError, match="corpus is empty"):
        retriever().retrieve(QUERY, [])


def test_a_corpus_that_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match="'c0' occurs twice"):
        retriever().retrieve(QUERY, [CORPUS[0], CORPUS[1], CORPUS[0]])
    with pytest.raises(ValueError, match="chunk 'x' has 3 dimensions where chunk 'c0' has 32"):
        retriever().retrieve(QUERY, [CORPUS[0], Chunk("x", "t", np.ones(3))])
    with pytest.raises(ValueError, match="3 dimensions where the query has 32"):
        retriever().retrieve(QUERY, [Chunk("x", "t", np.ones(3))])
    with pytest.raises(ValueError, match="token_embeddings have 3 dimensions where 32"):
        retriever(tokens=np.ones((5, 3)))


def test_a_result_explains_itself():
    result = retriever(reranker_type="cosine", top_k=3).search(QUERY, CORPUS)
    meta = result.metadata
    assert meta["method"] == "dartboard" and meta["targets"] == "candidates" and meta["candidates"] == 10
    assert meta["gain"] == result.scores and meta["coverage"] == pytest.approx(np.cumsum(result.scores))
    assert all(chunk.id in stands for chunk, stands in zip(result.chunks, meta["stands_for"], strict=True))
    assert 0 < meta["bound"] <= 1 and meta["sigma_source"] == "candidates" and meta["sigma"] > 0
    assert meta["config"]["top_k"] == 3 and set(meta["seconds"]) == {"embed", "triage", "select"}


def test_limits_by_id_and_metadata():
    dart = retriever(top_k=4, triage_k=4)
    result = dart.search(QUERY, CORPUS, must_include=["c9"], exclude=["c0"], max_per_source=2)
    assert ids(result.chunks)[0] == "c9" and "c0" not in ids(result.chunks)
    sources = [chunk.metadata["source"] for chunk in result.chunks]
    assert max(sources.count(s) for s in sources) <= 2
    short = dart.search(QUERY, CORPUS, token_budget=9)
    assert sum(len(chunk.text.split()) for chunk in short.chunks) <= 9
    assert dart.search(QUERY, CORPUS, method=MMR()).metadata["config"]["relevance_weight"] == 0.7
    with pytest.raises(ValueError, match="'zz'"):
        dart.search(QUERY, CORPUS, must_include=["zz"])
    assert ids(dart.search(QUERY, CORPUS, exclude=["zz"]).chunks) == ids(dart.search(QUERY, CORPUS).chunks)
    with pytest.raises(InvalidInputError) as caught:
        dart.search(QUERY, CORPUS, max_per_source=1, source_field="author")
    assert caught.value.field == "source_field"


def test_where_holds_for_a_list_of_chunks():
    dart = retriever(top_k=4)
    odd = [
        Chunk(chunk.id, chunk.text, chunk.embedding, {"number": at, **({"odd": True} if at % 2 else {})})
        for at, chunk in enumerate(CORPUS)
    ]
    found = dart.search(QUERY, odd, where="number >= 3 and odd = true")
    assert len(found) and all(
        chunk.metadata["number"] >= 3 and chunk.metadata["odd"] for chunk in found.chunks
    )
    nothing = dart.search(QUERY, odd, where="number > 1000")
    assert len(nothing) == 0 and nothing.metadata["relevance"]["verdict"] == "nothing_relevant"
    with pytest.raises(InvalidInputError) as caught:
        dart.search(QUERY, odd, where="year >= 2004")
    assert caught.value.field == "where"
    capped = dart.search(QUERY, odd, k=len(odd), max_per_source=1, source_field="odd")
    assert sum("odd" in chunk.metadata for chunk in capped.chunks) == 1
    assert len(capped) > 2, "a chunk without the field is not capped"


def test_a_sigma_that_is_too_wide_gets_a_warning():
    found = retriever(sigma=1.0).search(QUERY, CORPUS)
    assert found.explanation.warnings and "1" in found.metadata["warnings"][0]
    assert retriever().search(QUERY, CORPUS).explanation.warnings is None


def test_a_vocabulary_makes_the_targets():
    model = WordBag()
    words = sorted({word for text in TEXTS for word in text.split()})
    tokens = model.encode(words)
    dart = retriever(tokens=tokens, reranker_type="cosine", sigma=0.12, top_k=4)
    result = dart.search(QUERY, CORPUS)
    assert result.metadata["targets"] == "vocabulary" and len(result.chunks) == 4
    vector = dart._embed(QUERY)
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)  # noqa: E731
    weights = np.exp(-(((1 - unit(tokens) @ unit(vector)) / 2) ** 2) / (2 * 0.12**2))
    vectors = np.stack([c.embedding for c in CORPUS])
    kernel = np.exp(-(((1 - unit(vectors) @ unit(tokens).T) / 2) ** 2) / (2 * 0.12**2))
    order = {chunk.id: i for i, chunk in enumerate(CORPUS)}
    picks = [order[c.id] for c in result.chunks]
    assert picks[0] == int((unit(vectors) @ unit(vector)).argmax())
    covered = kernel[picks[0]]
    for pick in picks[1:]:
        gains = np.maximum(kernel - covered, 0) @ weights
        assert gains[pick] == pytest.approx(gains.max(), rel=1e-6)
        covered = np.maximum(covered, kernel[pick])
    assert covered @ weights / (kernel.max(axis=0) @ weights) == pytest.approx(
        result.metadata["coverage"][-1], rel=1e-6
    )


def test_chunk_token_distances_are_worked_out_once(monkeypatch):
    worked_out = []
    plain = vocab.distances
    monkeypatch.setattr(
        vocab, "distances", lambda left, *rest: worked_out.append(len(left)) or plain(left, *rest)
    )
    dart = retriever(tokens=WordBag().encode(["tea", "coffee", "hills"]))
    first = dart.search(QUERY, CORPUS)
    assert worked_out == [10]
    assert ids(dart.search(QUERY, CORPUS).chunks) == ids(first.chunks)
    dart.search("something else", [*CORPUS, *chunks_of(["new text"] * 1 + ["more"])[1:]][:10])
    assert worked_out == [10], "chunks seen before cost nothing"


def test_crossencoder_keeps_to_candidates_even_with_a_vocabulary():
    dart = retriever(SharedWords(), tokens=WordBag().encode(["tea"]), reranker_type="crossencoder")
    assert dart.search(QUERY, CORPUS).metadata["targets"] == "candidates"


@pytest.mark.parametrize("variant", ["cosine", "crossencoder", "hybrid"])
def test_the_default_model_end_to_end(variant):
    model = default_model()
    texts = [
        "The Eiffel Tower is 330 metres tall.",
        "At 330 metres, the Eiffel Tower is tall.",
        "The Eiffel Tower stands 330 m high.",
        "The Eiffel Tower was built by Gustave Eiffel's company from 1887 to 1889.",
        "Bananas are rich in potassium.",
        "The tower is painted every seven years.",
    ]
    corpus = [Chunk(str(i), t, v) for i, (t, v) in enumerate(zip(texts, model.encode(texts), strict=True))]
    config = DartboardConfig(top_k=2, reranker_type=variant)
    dart = DartboardRetriever(config, model, cross_encoder=LateInteraction(model))
    result = dart.search("How tall is the Eiffel Tower, and who built it?", corpus, token_budget=60)
    assert "3" in ids(result.chunks) and sum(model.count_tokens([c.text for c in result.chunks])) <= 60


def calibration(kind, model=""):
    made = Estimate(value=0.2, low=0.1, high=0.3, pairs=40)
    return Calibration(kind=kind, reason="", sigma=made, model=model)


def test_a_calibration_says_what_auto_means():
    model = WordBag()
    sigmas = {}
    for kind in ("default", "sigma"):
        dart = DartboardRetriever(DartboardConfig(), model, calibration=calibration(kind, model.fingerprint))
        meta = dart.search(QUERY, CORPUS).metadata
        sigmas[kind] = meta["sigma"]
        assert meta["sigma_source"] == ("candidates" if kind == "default" else "calibration")
    assert sigmas["sigma"] == 0.2
    given = DartboardRetriever(DartboardConfig(sigma=0.5), model, calibration=calibration("sigma"))
    assert given.search(QUERY, CORPUS).metadata["sigma_source"] == "given"
    tokens = DartboardRetriever(
        DartboardConfig(), model, model.encode(["tea", "hills"]), calibration=calibration("sigma")
    )
    assert tokens.search(QUERY, CORPUS).metadata["sigma"] == pytest.approx(sigmas["sigma"])


def test_a_calibration_of_another_model_is_refused():
    with pytest.raises(ConfigError, match="calibrate again"):
        DartboardRetriever(DartboardConfig(), WordBag(), calibration=calibration("sigma", "another model"))
    with pytest.raises(ConfigError, match="calibrate again"):
        DartboardRetriever(DartboardConfig(distance="euclidean"), WordBag(), calibration=calibration("sigma"))


def test_hybrid_with_a_vocabulary_asks_the_scorer():
    scorer = SharedWords()
    dart = retriever(scorer, tokens=WordBag().encode(["tea", "coffee", "clay"]), top_k=3)
    result = dart.search("cups are made of clay", CORPUS)
    assert scorer.asked == [("score", 10)]
    assert result.metadata["variant"] == "hybrid" and result.metadata["targets"] == "vocabulary"
    assert result.top_chunk.text == "cups are made of clay"


def test_copies_are_one_passage_to_a_cross_encoder():
    class OwnScoreIsLow(SharedWords):
        bounds = (-11.6, 11.4)

        def _shared(self, a, b):
            return 7.0 if a.split()[0] == b.split()[0] else -9.0

    texts = ["tea one", "tea one", "coffee two", "clay three"]
    corpus = chunks_of(texts)
    for sigma in ("auto", 0.05, 0.1):
        picked = retriever(OwnScoreIsLow(), reranker_type="crossencoder", top_k=3, sigma=sigma).retrieve(
            "tea", corpus
        )
        assert len({chunk.text for chunk in picked}) == 3


def test_search_takes_what_select_takes():
    dart = retriever(top_k=2)
    assert dart.search(QUERY, CORPUS, method="mmr").metadata["method"] == "mmr"
    assert len(dart.search(QUERY, CORPUS, k=7)) == 7
    assert len(dart.search(QUERY, CORPUS, token_budget=10_000)) == 10
    with pytest.raises(ConfigError, match="both in must_include and in exclude"):
        dart.search(QUERY, CORPUS, must_include=["c1"], exclude=["c1"])
    for corpus in (None, ["a"], "text"):
        with pytest.raises(ValueError, match="corpus must be a list of Chunk"):
            dart.retrieve(QUERY, corpus)
    with pytest.raises(ConfigError, match="compares passages by cosine"):
        retriever(SharedWords(), distance="euclidean")
    assert isinstance(dart._compute_dartboard_score([], 0, [0.0], [[0.0]]), float)


def test_a_vector_spoilt_later_is_named():
    corpus = chunks_of(TEXTS)
    corpus[3].embedding[:] = np.nan
    with pytest.raises(ValueError, match="embedding of chunk 'c3' contains NaN"):
        retriever().retrieve(QUERY, corpus)


def test_a_vocabulary_of_the_configured_size(tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path))
    dart = DartboardRetriever.with_vocabulary(DartboardConfig(token_vocab_size=1000), WordBag())
    assert dart._tokens.vocabulary.shape == (1000, 32)
    assert dart.search(QUERY, CORPUS).metadata["targets"] == "vocabulary"


def test_choosing_from_candidates_that_were_found_already():
    dart = retriever(reranker_type="cosine")
    vector = dart.embedding_model.encode_query(QUERY)
    chosen = dart.choose(QUERY, vector, CORPUS, k=4)
    assert ids(chosen.chunks) == ids(dart.search(QUERY, CORPUS, k=4).chunks)


def test_the_order_of_other_scores_counts_and_their_scale_does_not():
    dart = retriever(reranker_type="cosine")
    vector = dart.embedding_model.encode_query(QUERY)
    by_length = [float(len(text)) for text in TEXTS]
    longest = sorted(range(len(TEXTS)), key=lambda i: -by_length[i])
    chosen = dart.choose(QUERY, vector, CORPUS, scores=by_length, k=10, method="top_k")
    assert [by_length[int(id[1:])] for id in ids(chosen.chunks)] == [by_length[i] for i in longest]
    scaled = dart.choose(QUERY, vector, CORPUS, scores=[7 * x - 500 for x in by_length], k=4)
    assert ids(scaled.chunks) == ids(dart.choose(QUERY, vector, CORPUS, scores=by_length, k=4).chunks)
    own = dart.choose(QUERY, vector, CORPUS, k=10, method="top_k")
    same = dart.choose(QUERY, vector, own.chunks, scores=own.metadata["similarity"], k=4, method="dartboard")
    assert ids(same.chunks) == ids(dart.choose(QUERY, vector, CORPUS, k=4).chunks)


@pytest.mark.parametrize("variant", ["crossencoder", "hybrid"])
@pytest.mark.parametrize("method", ["dartboard", "top_k"])
@pytest.mark.parametrize("favourite", CORPUS, ids=lambda chunk: chunk.id)
def test_a_pair_scorers_order_counts_more_than_that_of_other_scores(variant, method, favourite):
    dart = retriever(Favourite(favourite.text), reranker_type=variant)
    vector = dart.embedding_model.encode_query(QUERY)
    against = [0.0 if chunk is favourite else 1.0 + len(chunk.text) for chunk in CORPUS]
    chosen = dart.choose(QUERY, vector, CORPUS, scores=against, k=5, method=method)
    assert len(chosen.chunks) == 5 and chosen.chunks[0].id == favourite.id
    assert ids(chosen.chunks) == ids(dart.choose(QUERY, vector, CORPUS, k=5, method=method).chunks)


def test_without_a_pair_scorer_the_hybrid_variant_takes_the_order_of_other_scores():
    dart = retriever(reranker_type="hybrid")
    vector = dart.embedding_model.encode_query(QUERY)
    last_first = [float(place) for place in range(len(CORPUS))]
    chosen = dart.choose(QUERY, vector, CORPUS, scores=last_first, k=10, method="top_k")
    assert ids(chosen.chunks) == ids(CORPUS[::-1])


def test_mmr_goes_by_the_scores_that_the_other_methods_go_by():
    dart = retriever(reranker_type="cosine")
    vector = dart.embedding_model.encode_query(QUERY)
    nearest = dart.choose(QUERY, vector, CORPUS, k=10, method="top_k")
    cosine = dict(zip(ids(nearest.chunks), nearest.metadata["similarity"], strict=True))
    scores = [float(at) for at in range(len(CORPUS))]  # the last passage is the best
    only_relevance = MMR(relevance_weight=1.0)
    chosen = dart.choose(QUERY, vector, CORPUS, scores=scores, k=4, method=only_relevance)
    assert ids(chosen.chunks) == [f"c{len(CORPUS) - 1 - at}" for at in range(4)]
    assert chosen.metadata["similarity"] == pytest.approx([cosine[id] for id in ids(chosen.chunks)])
    floor = sorted(cosine.values())[5]
    above = dart.choose(
        QUERY,
        vector,
        CORPUS,
        scores=scores,
        k=10,
        method=only_relevance,
        min_similarity=floor,
        must_include=["c0"],
    )
    wanted = {"c0"} | {id for id, value in cosine.items() if value >= floor}
    assert set(ids(above.chunks)) == wanted and above.chunks[0].id == "c0"
    own = dart.choose(QUERY, vector, CORPUS, k=4, method="mmr")
    again = dart.choose(
        QUERY, vector, CORPUS, scores=[cosine[f"c{at}"] for at in range(10)], k=4, method="mmr"
    )
    assert ids(again.chunks) == ids(own.chunks)


def test_equal_scores_go_by_id_under_top_k_whatever_the_order_of_the_candidates():
    dart = retriever(reranker_type="cosine")
    vector = dart.embedding_model.encode_query(QUERY)
    for order in (CORPUS, CORPUS[::-1]):
        scores = [float(int(chunk.id[1:]) % 2) for chunk in order]
        chosen = dart.choose(QUERY, vector, order, scores=scores, k=len(CORPUS), method="top_k")
        assert ids(chosen.chunks) == sorted(ids(CORPUS), key=lambda id: (-(int(id[1:]) % 2), id))
    with pytest.raises(InvalidInputError, match="finite"):
        dart.choose(QUERY, vector, CORPUS, scores=[float("nan")] * len(CORPUS), k=3, method="top_k")


def test_dealing_out_values_in_the_order_of_scores():
    values = np.array([-3.0, -1.0, -2.0, -4.0])
    assert in_order_of([1, 2, 3, 4], values).tolist() == [-4, -3, -2, -1]
    assert in_order_of([5, 5, 1, 9], values).tolist() == [-2.5, -2.5, -4, -1]
    for bad in ([1, 2, 3], [1, 2, 3, np.nan]):
        with pytest.raises(InvalidInputError, match="4 finite numbers"):
            in_order_of(bad, values)


@pytest.mark.parametrize("distance", ["scaled_cosine", "euclidean"])
def test_exact_copies_are_at_distance_zero_and_come_last_in_any_order(distance):
    """A matrix product may put copies 3e-16 apart, which at a small σ is a gain like any other."""
    dart = retriever(distance=distance)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        distinct = rng.standard_normal((12, 37)).astype(np.float32)
        content = rng.permutation(np.concatenate([np.arange(12), rng.integers(12, size=9)]))
        pool = [Chunk(f"{i:02d}", "same", distinct[one]) for i, one in enumerate(content)]
        to_query, between = dart._compute_distances(distinct[:3].sum(axis=0), pool)
        copies = content[:, None] == content
        assert not between[copies].any() and between[~copies].min() > 0.01
        for one in range(12):
            rows = np.flatnonzero(content == one)
            assert len(set(to_query[rows])) == 1 and (between[rows] == between[rows[0]]).all()
        sigma = 1e-3 * float(between.max())
        picks = dart._greedy_selection(log_kernel(to_query, sigma), log_kernel(between, sigma), 12)
        assert sorted(content[picks]) == list(range(12)), "no copy before every distinct passage"


def test_metadata_are_the_explanation():
    result = retriever(top_k=2).search(QUERY, CORPUS)
    explanation = result.explanation
    assert result.metadata == explanation.as_metadata() and result.scores == explanation.gain
    assert set(explanation.seconds) == {"embed", "triage", "select"} and explanation.retriever is None
    named = result.with_explanation(retriever="dense")
    assert named.metadata["retriever"] == "dense" and "retriever" not in result.metadata
    with pytest.raises(InvalidInputError, match="no explanation"):
        RetrievalResult("q", [], []).with_explanation(retriever="dense")


def test_choose_excludes_and_refuses_unknown_ids():
    dart = retriever(reranker_type="cosine")
    vector = dart._embed(QUERY)
    first = dart.choose(QUERY, vector, CORPUS, k=3).chunks[0].id
    chosen = dart.choose(QUERY, vector, CORPUS, k=len(CORPUS), exclude=[first, "nobody"])
    assert first not in ids(chosen.chunks) and len(chosen.chunks) == len(CORPUS) - 1
    with pytest.raises(InvalidInputError, match="no chunk 'zz' among the candidates"):
        dart.choose(QUERY, vector, CORPUS, must_include=["zz"])
    few = dart.choose(QUERY, vector, CORPUS, SearchOptions(k=2), token_budget=10_000)
    many = dart.choose(QUERY, vector, CORPUS, token_budget=10_000)
    assert len(few.chunks) == 2 < len(many.chunks)


def test_a_near_duplicate_of_what_was_seen_is_not_shown_though_another_passage_leads_its_group():
    """L and A are alike, A and S are alike, L and S are not: with S seen, A belongs to S."""
    rng = np.random.default_rng(0)
    words = ["".join(chr(97 + letter) for letter in rng.integers(0, 26, 7)) for _ in range(200)]
    texts = {"L": words[0:100], "A": words[15:115], "S": words[30:130], "x": words[150:200]}
    model = WordBag()
    chunks = [
        Chunk(id, " ".join(some), model.encode([" ".join(some)])[0], {"rank": 9 if id == "A" else 0})
        for id, some in texts.items()
    ]
    retriever = DartboardRetriever(DartboardConfig(), model)
    query = " ".join(words[:60])
    shown = [c.id for c in retriever.search(query, chunks, k=4, seen=["S"], prefer="rank").chunks]
    assert shown == ["L", "x"]
    assert "A" in [c.id for c in retriever.search(query, chunks, k=4, prefer="rank").chunks]
