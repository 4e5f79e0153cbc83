"""σ by likelihood: recovered where it is known, equal to an optimiser, honest where pairs say little."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

from dartboard.calibration import (
    Calibration,
    Estimate,
    Evidence,
    Labelled,
    calibrate,
    fit_sigma,
)
from dartboard.errors import ConfigError, InvalidInputError


def drawn(sigma, queries=300, n=60, seed=0):
    """Queries whose target was drawn from the model itself at a known σ."""
    rng = np.random.default_rng(seed)
    evidence = []
    for _ in range(queries):
        distance = rng.uniform(0.1, 0.5, n)
        probability = np.exp(-(distance**2) / (2 * sigma**2))
        target = rng.choice(n, p=probability / probability.sum())
        evidence.append(Evidence(-(distance**2), np.array([target])))
    return evidence


@pytest.mark.parametrize("sigma", [0.05, 0.09, 0.2])
def test_a_known_sigma_is_recovered(sigma):
    estimate = fit_sigma(drawn(sigma))
    assert estimate.low <= sigma <= estimate.high
    assert estimate.value == pytest.approx(sigma, rel=0.15) and not estimate.at_edge
    assert estimate.pairs == 300


def test_the_interval_narrows_with_more_pairs():
    few, many = (fit_sigma(drawn(0.1, queries)) for queries in (20, 600))
    assert many.high - many.low < (few.high - few.low) / 2


def test_it_is_the_maximum_of_the_likelihood():
    evidence = drawn(0.12, queries=40)

    def loss(sigma):
        return -sum(
            (scipy.special.log_softmax(e.statistic / (2 * sigma**2)))[e.targets].sum() for e in evidence
        )

    best = scipy.optimize.minimize_scalar(loss, bounds=(0.01, 1.0), method="bounded").x
    assert fit_sigma(evidence).value == pytest.approx(best, rel=1e-3)


def test_pairs_that_set_no_limit_are_said_to():
    distance = np.linspace(0.1, 0.5, 20)
    nearest = fit_sigma([Evidence(-(distance**2), np.array([0]))] * 30)
    farthest = fit_sigma([Evidence(-(distance**2), np.array([19]))] * 30)
    assert nearest.at_edge and nearest.value < 0.02 and not nearest.settled
    assert farthest.at_edge and farthest.value > 10 and not farthest.settled
    assert nearest.open_below and nearest.interval == f"at most {nearest.high:.3g}, no lower limit"
    assert farthest.open_above and farthest.interval == f"at least {farthest.low:.3g}, no upper limit"


@pytest.mark.parametrize("queries", [2, 30])
@pytest.mark.parametrize("target", [0, 19])
def test_without_a_maximum_the_interval_is_what_the_likelihood_does_not_rule_out(queries, target):
    """χ² with one degree of freedom: twice the loss of log-likelihood against its supremum."""
    statistic = -(np.linspace(0.1, 0.5, 20) ** 2)
    found = fit_sigma([Evidence(statistic, np.array([target]))] * queries)

    def log_likelihood(sigma):
        return queries * scipy.special.log_softmax(statistic / (2 * sigma**2))[target]

    end = found.high if target == 0 else found.low
    loss = log_likelihood(1e-6 if target == 0 else 1e6) - log_likelihood(end)
    assert 2 * loss == pytest.approx(scipy.stats.chi2.ppf(0.95, 1), rel=0.15)
    assert found.low <= found.value <= found.high


def test_two_pairs_leave_a_wide_interval():
    """Both targets are nearest, or one of them is second: resamples may then see the nearest alone."""
    distance = np.linspace(0.1, 0.5, 20)
    both, one = (
        fit_sigma([Evidence(-(distance**2), np.array([at])) for at in targets])
        for targets in ((0, 0), (0, 1))
    )
    assert both.open_below and both.high > 0.05 and one.open_below and not one.open_above
    assert not one.at_edge and one.low < one.value < one.high and not one.settled
    assert both.interval.startswith("at most 0.") and one.interval.startswith("at most 0.")
    alike = fit_sigma([Evidence(np.zeros(5), np.array([1]))] * 2)
    assert alike.interval == "no limit on either side"
    assert Estimate(value=0.1, low=0.05, high=0.2, pairs=9).interval == "0.05 to 0.2"


def test_the_same_seed_gives_the_same_interval():
    assert fit_sigma(drawn(0.1, 30), seed=5) == fit_sigma(drawn(0.1, 30), seed=5)
    assert fit_sigma(drawn(0.1, 30), seed=5) != fit_sigma(drawn(0.1, 30), seed=6)


def test_no_targets_at_all():
    with pytest.raises(InvalidInputError, match="target"):
        fit_sigma([Evidence(np.zeros(3), np.array([], dtype=int))])


def corpus_with_copies(queries=60, seed=0, copies=0):
    """Queries that mean two passages each, among passages on their topic."""
    rng = np.random.default_rng(seed)
    topics = unit(rng.standard_normal((queries, 32)))
    passages = unit(np.repeat(topics, 6, axis=0) + 0.9 * unit(rng.standard_normal((queries * 6, 32))))
    asked = unit(passages[0::6] + passages[1::6] + 0.6 * unit(rng.standard_normal((queries, 32))))
    names = [f"p{i}" for i in range(len(passages))]
    targets = [[f"p{6 * i}", f"p{6 * i + 1}"] for i in range(queries)]
    more = [unit(passages + 0.15 * unit(rng.standard_normal(passages.shape))) for _ in range(copies)]
    return Labelled(
        corpus=np.concatenate([passages, *more]), queries=asked, names=names * (copies + 1), targets=targets
    )


def test_calibrate_keeps_what_wins_on_held_out_queries():
    seen = []
    result = calibrate(
        corpus_with_copies(), corpus_with_copies(copies=4), model="m", k=4, triage_k=40, progress=seen.append
    )
    score = {name: np.mean(list(by.values())) for name, by in result.held_out.items()}
    assert set(score) == {"sigma", "default", "nearest neighbours"} and 0 < result.p_value <= 1
    assert score[result.kind] >= score["default"]
    assert score[result.kind] > score["nearest neighbours"], (
        "copies push the second target out of the nearest"
    )
    assert result.sigma.low <= result.sigma.value <= result.sigma.high
    assert seen[-1] == 60 and result.reason


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def spread_out(near, noise, queries=60, seed=0):
    """Queries that mean the first two of six passages on a topic, which lie ``near`` to its centre."""
    rng = np.random.default_rng(seed)
    topics = unit(rng.standard_normal((queries, 32)))
    far = np.tile([near, near, 0.9, 0.9, 0.9, 0.9], queries)[:, None]
    passages = unit(np.repeat(topics, 6, axis=0) + far * unit(rng.standard_normal((queries * 6, 32))))
    aim = topics if near < 0.9 else passages[0::6] + passages[1::6]
    return Labelled(
        corpus=passages,
        queries=unit(aim + noise * unit(rng.standard_normal((queries, 32)))),
        names=[f"p{i}" for i in range(len(passages))],
        targets=[[f"p{6 * i}", f"p{6 * i + 1}"] for i in range(queries)],
    )


def test_a_difference_that_could_be_chance_keeps_the_rule_whatever_the_seed():
    data, ahead = spread_out(near=0.9, noise=1.5), 0
    for seed in range(6):
        found = calibrate(data, k=3, triage_k=40, seed=seed, resamples=50)
        assert found.kind == "default"
        score = {name: by["as it is"] for name, by in found.held_out.items()}
        if score["sigma"] > score["default"]:
            ahead += 1
            assert found.p_value >= 0.05 and f"(p = {found.p_value:.3f}; " in found.reason
    assert ahead >= 1, "there is something to be misled by"


@pytest.mark.parametrize("seed", [0, 2])
def test_what_beats_the_rule_by_more_than_chance_is_kept(seed):
    """Targets that lie close together stand in for each other under the rule: a smaller σ finds both."""
    found = calibrate(spread_out(near=0.3, noise=0.9, queries=80, seed=seed), k=2, triage_k=40)
    assert found.kind == "sigma" and found.p_value < 0.001
    assert found.held_out["sigma"]["as it is"] > found.held_out["default"]["as it is"] + 0.1
    assert found.sigma_or_auto() == found.sigma.value


def views(width, queries=80, seed=0):
    """Queries with six facets of three passages each; those of a facet lie ``width`` apart.

    The first facet is nearest to its query, so that nearest neighbours say the same thing three times.
    """
    rng = np.random.default_rng(seed)
    asked = unit(rng.standard_normal((queries, 32)))
    away = np.linspace(0.7, 1.0, 6)[:, None]
    facets = unit(asked[:, None] + away * unit(rng.standard_normal((queries, 6, 32)))).reshape(-1, 32)
    passages = unit(np.repeat(facets, 3, axis=0) + width * unit(rng.standard_normal((queries * 18, 32))))
    names = [f"p{i}" for i in range(len(passages))]
    return Labelled(
        corpus=passages,
        queries=asked,
        names=names,
        targets=[names[18 * query : 18 * query + 18] for query in range(queries)],
        facets=[
            [names[18 * query + 3 * facet : 18 * query + 3 * facet + 3] for facet in range(6)]
            for query in range(queries)
        ],
    )


def test_facets_are_counted_where_several_passages_cover_one():
    data, heard = views(0.6), []
    found = calibrate(data, k=5, triage_k=40, progress=heard.append)
    assert found.measure == "facets" and heard == list(range(1, 41))
    assert found.held_out["default"]["as it is"] > found.held_out["nearest neighbours"]["as it is"] + 0.05
    recall = calibrate(data, k=5, triage_k=40, measure="recall")
    assert recall.measure == "recall"
    assert recall.held_out["default"]["as it is"] <= 5 / 18
    each = replace(data, facets=[[[name] for name in names] for names in data.targets])
    assert calibrate(each, k=5, triage_k=40, resamples=10).measure == "recall"


def test_a_facet_is_found_once_and_a_query_without_facets_has_its_targets():
    data = views(0.6, queries=30)
    one = replace(data, facets=[[names] for names in data.targets])
    none = replace(data, facets=[[] for _ in data.targets])
    for few in (one, none):
        found = calibrate(few, k=1, triage_k=40, measure="facets", resamples=10)
        assert set(found.held_out["default"].values()) == {1.0} and found.kind == "default"


def test_facets_need_judged_facets():
    with pytest.raises(ConfigError, match="facets"):
        calibrate(corpus_with_copies(queries=5), measure="facets")
    with pytest.raises(InvalidInputError, match="facets"):
        replace(views(0.6, queries=3), facets=[[["p0"]]])


def test_few_pairs_keep_the_rule():
    result = calibrate(corpus_with_copies(queries=5))
    assert result.kind == "default" and result.sigma.pairs == 10 and result.held_out == {}


def test_pairs_out_of_reach_are_counted():
    rng = np.random.default_rng(0)
    corpus, queries = rng.standard_normal((80, 16)), rng.standard_normal((12, 16))
    names = [str(i) for i in range(80)]
    order = (corpus / np.linalg.norm(corpus, axis=1, keepdims=True) @ queries.T).argsort(axis=0)
    targets = [[names[order[-1 if query % 2 else 0, query]]] for query in range(12)]
    found = calibrate(Labelled(corpus=corpus, queries=queries, names=names, targets=targets), triage_k=20)
    assert (found.missed, found.sigma.pairs, found.kind) == (6, 6, "default")


def test_the_rule_is_tried_out_with_words_where_there_are_any():
    data = corpus_with_copies(queries=30)
    words = [f"Passage {name} says what the others do not say of Place{name}." for name in data.names]
    read: list[int] = []

    class Noted(list[str]):
        def __getitem__(self, at):
            read.append(int(at))
            return super().__getitem__(at)

    calibrate(replace(data, texts=Noted(words)), k=3)
    assert read


def test_contradictory_pairs_keep_the_rule():
    data = corpus_with_copies(queries=40)
    rng = np.random.default_rng(1)
    anyone = [[f"p{i}" for i in rng.choice(240, 2, replace=False)] for _ in range(40)]
    result = calibrate(
        Labelled(corpus=data.corpus, queries=data.queries, names=data.names, targets=anyone), triage_k=240
    )
    assert result.kind == "default"


def test_a_calibration_is_kept_as_json(tmp_path):
    before = calibrate(corpus_with_copies(queries=30), k=3)
    before.save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json") == before
    stored = json.loads((tmp_path / "c.json").read_text())
    with pytest.raises(InvalidInputError, match="measure"):
        Calibration.from_json(stored | {"measure": "luck"})
    (tmp_path / "c.json").write_text(json.dumps(stored | {"format": 99}))
    with pytest.raises(InvalidInputError, match="format"):
        Calibration.load(tmp_path / "c.json")
    for damage in ("{", "[]", '{"format": 2}'):
        (tmp_path / "c.json").write_text(damage)
        with pytest.raises(InvalidInputError, match="calibrate"):
            Calibration.load(tmp_path / "c.json")


def test_unusable_arguments():
    with pytest.raises(ConfigError, match="triage_k"):
        calibrate(corpus_with_copies(queries=3), k=9, triage_k=3)
    with pytest.raises(InvalidInputError, match="names"):
        Labelled(corpus=np.ones((2, 3)), queries=np.ones((1, 3)), names=["a"], targets=[["a"]])
    assert Estimate(value=1.0, low=0.5, high=2.0, pairs=3).at_edge is False
