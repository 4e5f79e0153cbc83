"""Systems pick what their names say."""

import numpy as np
import pytest

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.evaluation import Content, Judgements, baselines, evaluate
from dartboard.evaluation.baselines import Oracle, RandomSystem, RecordedRun, check_unique
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.registry import EVERYTHING, QUICK, check_names, choose, expand
from dartboard.selection import select
from dartboard.types import Chunk, Dataset
from tests.evaluation.data import clustered
from tests.models import WordBag


class Overlap:
    """A pair scorer: how many words two texts share."""

    bounds = (0.0, 4.0)

    def score(self, query, passages):
        return np.array([float(len(set(query.split()) & set(p.split()))) for p in passages])

    def score_matrix(self, passages):
        return np.stack([self.score(p, passages) for p in passages])


@pytest.fixture(scope="module")
def dataset():
    return clustered()


@pytest.fixture(scope="module")
def question(dataset):
    return Triage(dataset, triage_k=30).question("q03")


def made(name, dataset, **more):
    chosen = choose([name], dataset, Judgements.of(dataset), **more)
    assert not chosen.skipped
    return chosen.systems[0]


def test_triage_takes_the_nearest_first(dataset, question):
    vectors = np.stack([c.embedding for c in dataset.chunks])
    similarity = vectors @ dataset.metadata["query_embeddings"][3]
    order = np.argsort(-similarity)[:30]
    assert [c.id for c in question.candidates] == [dataset.chunks[i].id for i in order]
    np.testing.assert_allclose(question.similarity, similarity[order], atol=1e-6)
    assert question.pool() is question.pool()


def test_triage_breaks_ties_by_id():
    dataset = clustered()
    for chunk in dataset.chunks:
        chunk.embedding = np.ones(32, dtype=np.float32)
    found = Triage(dataset, triage_k=3).question("q00")
    assert [c.id for c in found.candidates] == ["c0-0", "c0-1", "c0-2"]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("cosine", "top_k"),
        ("mmr-0.7", "mmr"),
        ("dedup-0.90", "near_duplicate_filter"),
        ("dartboard", "dartboard"),
    ],
)
def test_selecting_systems_select(dataset, question, name, method):
    expected = select(question.vectors, question.vector, 5, method=method).indices
    assert made(name, dataset).rank(question, 5, 0) == [question.candidates[i].id for i in expected]


def test_a_sigma_in_the_name_is_used(dataset, question):
    expected = select(question.vectors, question.vector, 5, sigma=0.3).indices
    assert made("dartboard-0.3", dataset).rank(question, 5, 0) == [
        question.candidates[i].id for i in expected
    ]


def test_chance_differs_by_question_and_seed_and_repeats(dataset, question):
    other = Triage(dataset, triage_k=30).question("q04")
    chance = RandomSystem()
    assert len(chance.seeds) == 10
    picks = {tuple(chance.rank(question, 5, seed)) for seed in chance.seeds}
    assert len(picks) == 10
    assert tuple(chance.rank(question, 5, 3)) in picks
    places = [
        [q.candidates.index(next(c for c in q.candidates if c.id == n)) for n in chance.rank(q, 5, 0)]
        for q in (question, other)
    ]
    assert places[0] != places[1]


@pytest.mark.parametrize("copies", [0, 2])
def test_the_oracle_is_an_upper_bound(copies):
    dataset = clustered(copies=copies)
    judgements = Judgements.of(dataset)
    oracle, triage = Oracle(judgements), Triage(dataset)
    run = {q: oracle.rank(triage.question(q), 5, 0) for q in dataset.query_ids}
    names = [
        "ndcg@5",
        "recall@5",
        "distinct_ndcg@5",
        "set_recall@2",
        "success@5",
        "alpha_ndcg@5",
        "mrr",
        "map",
        "subtopic_recall@2",
    ]
    found = evaluate(run, judgements, [*names, "distinct_share@5"], content=Content.of(dataset))
    assert found.means == pytest.approx(dict.fromkeys(found.values, 1.0))
    assert all(len(picks) == 5 for picks in run.values())


def test_the_oracle_knows_nothing_of_unjudged_questions(dataset, question):
    oracle = Oracle(Judgements(qrels={"other": {"a": 1}}))
    assert oracle.rank(question, 3, 0) == [c.id for c in question.candidates[:3]]


@pytest.mark.parametrize("strategy", ["dpp", "cover"])
def test_pyversity(dataset, question, strategy):
    picks = made(f"pyversity-{strategy}", dataset).rank(question, 5, 0)
    assert len(set(picks)) == 5


@pytest.mark.parametrize("variant", ["hybrid", "crossencoder"])
def test_variants_that_read_need_text(dataset, question, variant):
    chosen = choose([f"dartboard-{variant}"], dataset, Judgements.of(dataset))
    assert chosen.systems == []
    assert "reads texts" in chosen.skipped[f"dartboard-{variant}"]
    real = clustered()
    real.metadata["type"] = "real"
    picks = made(f"dartboard-{variant}", real, scorer=Overlap).rank(question, 5, 0)
    assert len(set(picks)) == 5


def test_one_scorer_serves_all_variants(dataset):
    real = clustered()
    real.metadata["type"] = "real"
    chosen = choose(["dartboard-hybrid", "dartboard-crossencoder"], real, Judgements.of(real), scorer=Overlap)
    assert chosen.systems[0].scorer is chosen.systems[1].scorer


def test_pyversity_is_skipped_where_it_is_missing(dataset, monkeypatch):
    monkeypatch.setattr("dartboard.evaluation.registry.find_spec", lambda name: None)
    chosen = choose(["pyversity-dpp"], dataset, Judgements.of(dataset))
    assert "not installed" in chosen.skipped["pyversity-dpp"]


def test_a_run_file_is_a_system(dataset, question, tmp_path):
    path = tmp_path / "bm25.trec"
    path.write_text("q03 Q0 c0-1 1 2.5 x\nq03 Q0 c1-1 2 3.5 x\n")
    system = made(f"run:{path}", dataset)
    assert system.name == "bm25"
    assert system.rank(question, 1, 0) == ["c1-1"]
    assert RecordedRun("x", {}).rank(question, 5, 0) == ()


WORDS = {
    "jwt": "JWT tokens are validated with the verify method",
    "session": "A session cookie is validated on the server",
    "pool": "A connection pool keeps database connections open",
    "cache": "The cache keeps recent answers in memory",
}


def worded(model):
    """A data set of real words that a model embedded; one question, about a passage's title alone."""
    chunks = [
        Chunk(name, text, vector, {"title": "Zanzibar" if name == "pool" else ""})
        for (name, text), vector in zip(WORDS.items(), model.encode(list(WORDS.values())), strict=True)
    ]
    return Dataset(
        name="worded",
        chunks=chunks,
        queries=["zanzibar cookie"],
        query_ids=["q"],
        ground_truth={"q": ["pool"]},
        metadata={
            "type": "real",
            "query_embeddings": model.encode(["zanzibar cookie"]),
            "model": {"name": model.name, "fingerprint": model.fingerprint},
        },
    )


def test_retrievers_are_systems():
    """They search the whole corpus, titles included, and are those of the catalogue of retrievers."""
    model = WordBag()
    dataset = worded(model)
    question = Triage(dataset, triage_k=1).question("q")
    found = {
        name: made(name, dataset, model=lambda: model).rank(question, 4, 0)
        for name in ("dense", "bm25", "hybrid", "hybrid:0.01", "rrf")
    }
    assert set(found["bm25"]) == {"pool", "session"}, "what shares no word is not found"
    assert found["dense"][0] == "session" and len(found["dense"]) == 4
    assert len(found["hybrid"]) == 4 and found["hybrid:0.01"][:2] == found["bm25"]
    assert made("bm25", dataset, model=lambda: model).name == "bm25"


def test_retrievers_are_skipped_where_they_cannot_read(dataset):
    chosen = choose(["bm25", "dense"], dataset, Judgements.of(dataset))
    assert all("made up" in reason for reason in chosen.skipped.values()) and len(chosen.skipped) == 2
    real = worded(WordBag())
    chosen = choose(["dense"], real, Judgements.of(real), model=lambda: WordBag(dim=16))
    assert "the vectors of this data set are not" in chosen.skipped["dense"]
    with pytest.raises(ConfigError, match="alpha"):
        choose(["hybrid:7"], real, Judgements.of(real), model=WordBag)


def test_own_systems_are_taken_as_they_are(dataset):
    mine = RecordedRun("mine", {})
    assert choose([mine, "cosine"], dataset, Judgements.of(dataset)).systems[0] is mine


def test_groups_are_spelled_out(tmp_path):
    assert expand(["quick", "cosine"]) == list(QUICK)
    assert set(EVERYTHING) - set(QUICK) == {"dartboard-hybrid", "dartboard-crossencoder"}
    (tmp_path / "x.trec").touch()
    check_names(["all", "mmr-0.25", "dartboard-0.1", f"run:{tmp_path / 'x.trec'}"])


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("bm26", "unknown system 'bm26'"),
        ("mmr-high", "'mmr-high': after the last - comes a number"),
        ("mmr-7", r"'mmr-7': relevance_weight must be in \[0, 1\]"),
        ("dedup-3", "'dedup-3': threshold is a similarity"),
        ("dartboard-0", "'dartboard-0': sigma must be in"),
        ("run:nowhere.trec", "'run:nowhere.trec': there is no such file"),
    ],
)
def test_unknown_names_are_refused(name, complaint):
    with pytest.raises(ConfigError, match=complaint):
        check_names([name])


def test_names_are_unique():
    with pytest.raises(InvalidInputError, match="two systems are called 'random'"):
        check_unique([RandomSystem(), RandomSystem()])
    with pytest.raises(ConfigError, match="no system"):
        check_unique([])


def test_triage_says_what_a_data_set_lacks():
    dataset = clustered()
    dataset.metadata["query_embeddings"] = dataset.metadata["query_embeddings"][:3]
    with pytest.raises(InvalidInputError, match="3 query_embeddings for 12 queries"):
        Triage(dataset)
    del dataset.metadata["query_embeddings"]
    with pytest.raises(InvalidInputError, match="has no metadata"):
        Triage(dataset)
    dataset.chunks = []
    with pytest.raises(InvalidInputError, match="no chunks"):
        Triage(dataset)


def test_known_vectors_stand_in_for_a_model():
    model = baselines.KnownVector(np.array([3.0, 4.0]))
    assert model.embedding_dim == 2
    assert model.encode(["a", "b"]).shape == (2, 2)
    assert model.encode("a").shape == (1, 2)
