"""σ by likelihood: recovered where it is known, equal to an optimiser, honest where pairs say little."""

import json

import numpy as np
import pytest
import scipy.optimize
import scipy.special

from dartboard.calibration import (
    Calibration,
    Estimate,
    Evidence,
    Labelled,
    calibrate,
    fit_divisor,
    fit_sigma,
    fit_temperature,
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


def test_divisor_and_temperature_are_the_same_estimate_in_other_units():
    evidence = drawn(0.1, queries=50)
    sigma = fit_sigma(evidence).value
    scaled = [Evidence(e.statistic / 0.3**2, e.targets) for e in evidence]
    assert fit_divisor(scaled).value == pytest.approx(0.3 / sigma, rel=1e-3)
    rng = np.random.default_rng(0)
    scores = [rng.standard_normal(30) * 4 for _ in range(400)]
    targets = [[rng.choice(30, p=scipy.special.softmax(s / 2.5))] for s in scores]
    estimate = fit_temperature(scores, targets)
    assert estimate.low <= 2.5 <= estimate.high


def test_pairs_that_set_no_limit_are_said_to():
    distance = np.linspace(0.1, 0.5, 20)
    nearest = fit_sigma([Evidence(-(distance**2), np.array([0]))] * 30)
    farthest = fit_sigma([Evidence(-(distance**2), np.array([19]))] * 30)
    assert nearest.at_edge and nearest.value < 0.02
    assert farthest.at_edge and farthest.value > 10


def test_the_same_seed_gives_the_same_interval():
    assert fit_sigma(drawn(0.1, 30), seed=5) == fit_sigma(drawn(0.1, 30), seed=5)
    assert fit_sigma(drawn(0.1, 30), seed=5) != fit_sigma(drawn(0.1, 30), seed=6)


def test_no_targets_at_all():
    with pytest.raises(InvalidInputError, match="nothing to calibrate on"):
        fit_sigma([Evidence(np.zeros(3), np.array([], dtype=int))])


def corpus_with_copies(queries=60, seed=0, copies=0):
    """Queries that mean two passages each, among passages on their topic."""
    rng = np.random.default_rng(seed)
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)  # noqa: E731
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
    assert set(score) == {"sigma", "divisor", "default", "nearest neighbours"}
    assert score[result.kind] == max(score[name] for name in ("sigma", "divisor", "default"))
    assert score[result.kind] > score["nearest neighbours"], (
        "copies push the second target out of the nearest"
    )
    assert result.sigma.low <= result.sigma.value <= result.sigma.high
    assert seen[-1] == 60 and result.reason


def test_few_pairs_keep_the_rule():
    result = calibrate(corpus_with_copies(queries=5))
    assert result.kind == "default" and "only 10 pairs" in result.reason and result.held_out == {}


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
    (tmp_path / "c.json").write_text(json.dumps(stored | {"format": 99}))
    with pytest.raises(InvalidInputError, match="another format"):
        Calibration.load(tmp_path / "c.json")
    for damage in ("{", "[]", '{"format": 1}'):
        (tmp_path / "c.json").write_text(damage)
        with pytest.raises(InvalidInputError, match="is no calibration"):
            Calibration.load(tmp_path / "c.json")


def test_unusable_arguments():
    with pytest.raises(ConfigError, match="triage_k >= k"):
        calibrate(corpus_with_copies(queries=3), k=9, triage_k=3)
    with pytest.raises(InvalidInputError, match="need one each"):
        Labelled(corpus=np.ones((2, 3)), queries=np.ones((1, 3)), names=["a"], targets=[["a"]])
    assert Estimate(value=1.0, low=0.5, high=2.0, pairs=3).at_edge is False
