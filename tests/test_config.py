import dataclasses

import numpy as np
import pytest
from pydantic import TypeAdapter

from dartboard import DartboardConfig
from dartboard.api.schemas import Sigma
from dartboard.calibration import Calibration, Estimate, Evidence, fit_sigma
from dartboard.embeddings.descriptions import ModelDescription
from dartboard.engine import load_settings
from dartboard.errors import ConfigError
from dartboard.evaluation.registry import check_names
from dartboard.explain.exploration import sigma_range
from dartboard.search_options import SearchOptions
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA


def test_defaults_are_the_specifications_but_for_sigma():
    config = DartboardConfig()
    assert config.sigma == "auto"
    assert (config.top_k, config.triage_k, config.reranker_type) == (5, 100, "hybrid")
    assert (config.token_vocab_size, config.log_eps, config.sigma_min) == (5000, 1e-10, 1e-5)


def test_positional_order_is_the_specifications():
    assert [field.name for field in dataclasses.fields(DartboardConfig)][:7] == [
        "sigma", "top_k", "triage_k", "reranker_type", "token_vocab_size", "log_eps", "sigma_min",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sigma": 0}, r"sigma must be in \[1e-05, 10\] or be 'auto', got 0"),
        ({"sigma": 11}, r"sigma must be in \[1e-05, 10\]"),
        ({"sigma": float("nan")}, "sigma must be in"),
        ({"sigma": "wide"}, "sigma must be in"),
        ({"sigma": True}, "sigma must be in"),
        ({"top_k": 0}, r"top_k must be a whole number in \[1, 20\], got 0"),
        ({"top_k": 21}, r"top_k must be a whole number in \[1, 20\]"),
        ({"top_k": 2.0}, "top_k must be a whole number"),
        ({"triage_k": 4}, r"triage_k must be a whole number in \[5, 1000\]"),
        ({"triage_k": 1001}, r"in \[5, 1000\]"),
        ({"token_vocab_size": 999}, r"token_vocab_size must be a whole number in \[1000, 50000\]"),
        ({"reranker_type": "bert"}, "reranker_type must be one of cosine, crossencoder, hybrid"),
        ({"distance": "l1"}, "distance must be one of scaled_cosine, euclidean"),
        ({"score_scaling": "z"}, "score_scaling must be one of bounds, minmax, sigmoid"),
        ({"sigma_min": 0}, "sigma_min must be in"),
        ({"log_eps": -1}, "log_eps must be in"),
    ],
)
def test_out_of_range_names_the_range(change, says):
    with pytest.raises(ValueError, match=says) as caught:
        DartboardConfig(**change)
    assert isinstance(caught.value, ConfigError)


def _calibrated(sigma):
    estimate = Estimate(value=sigma, low=sigma, high=sigma, pairs=99)
    return Calibration(kind="sigma", reason="measured", sigma=estimate)


SIGMA_DOORS = {
    "configuration of a retriever": lambda sigma: DartboardConfig(sigma=sigma),
    "flag": lambda sigma: load_settings({"sigma": str(sigma)}, environment={}),
    "variable": lambda sigma: load_settings(environment={"DARTBOARD_SIGMA": str(sigma)}),
    "calibration": _calibrated,
    "integrations": lambda sigma: SearchOptions(sigma=sigma),
    "service": lambda sigma: TypeAdapter(Sigma).validate_python(sigma),
    "evaluation": lambda sigma: check_names([f"dartboard-{sigma:f}"]),
    "model": lambda sigma: ModelDescription(name="m", dim=3, sigma=sigma),
}


@pytest.mark.parametrize("door", SIGMA_DOORS)
def test_sigma_has_the_same_range_at_every_door(door):
    for allowed in (SMALLEST_SIGMA, 0.09, LARGEST_SIGMA):
        SIGMA_DOORS[door](allowed)
    for refused in (0.9 * SMALLEST_SIGMA, 1.1 * LARGEST_SIGMA):
        with pytest.raises(ValueError, match=r"1e-05|0.00001|10"):
            SIGMA_DOORS[door](refused)


def test_what_is_looked_at_around_sigma_keeps_to_its_range():
    assert sigma_range(SMALLEST_SIGMA)[0] == SMALLEST_SIGMA
    assert sigma_range(LARGEST_SIGMA)[1] == LARGEST_SIGMA


def test_a_fitted_sigma_out_of_range_settles_nothing():
    """Targets that are a little nearer than others on distances of 1e-6, or of 1000."""
    for scale in (1e-6, 1e3):
        squared = (scale * np.linspace(1, 2, 50)) ** 2
        evidence = [Evidence(-squared, np.array([at % 40])) for at in range(60)]
        found = fit_sigma(evidence, resamples=20)
        assert not SMALLEST_SIGMA <= found.value <= LARGEST_SIGMA
        assert found.at_edge and not found.settled
