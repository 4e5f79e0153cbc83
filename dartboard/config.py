"""The knobs of a retrieval, each with its range."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

from dartboard.errors import ConfigError
from dartboard.selection.kernel import DISTANCES, Auto, Distance
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA

RerankerType = Literal["cosine", "crossencoder", "hybrid"]
ScoreScaling = Literal["bounds", "minmax", "sigmoid"]

RERANKERS: tuple[RerankerType, ...] = ("cosine", "crossencoder", "hybrid")
SCALINGS: tuple[ScoreScaling, ...] = ("bounds", "minmax", "sigmoid")


@dataclass(frozen=True, slots=True)
class DartboardConfig:
    """Configuration of a :class:`DartboardRetriever`. Every value is checked.

    Args:
        sigma: the width of P(t|q), in distances: ``"auto"`` estimates it from the candidates of each query,
            a number in [sigma_min, 10] fixes it. It is not a weight between relevance and diversity.
        top_k: how many chunks to return, 1 to 20.
        triage_k: how many nearest chunks to select from, ``top_k`` to 1,000.
        reranker_type: who scores. ``cosine``: the scaled cosine distance for query and passages.
            ``crossencoder``: a pair scorer for both. ``hybrid``: ``softmax(pair score / σ)`` for the query,
            scaled cosine similarity between passages; σ is then a temperature, and ``"auto"`` the standard
            deviation of the scores. Without a pair scorer ``hybrid`` is ``cosine``, and results say so.
        token_vocab_size: tokens of :meth:`DartboardRetriever.with_vocabulary`, 1,000 to 50,000.
        log_eps: part of the specification; exact selection does not need it.
        sigma_min: the smallest σ that is allowed, 1e-12 to 1.
        distance: ``scaled_cosine``, ``(1 - cos) / 2``, or ``euclidean``.
        score_scaling: how ``crossencoder`` turns pair scores into similarities in [0, 1]: by the scorer's
            ``bounds``, by the smallest and largest score of the query (``minmax``), or by ``sigmoid``.

    Raises:
        ConfigError: a value is outside its range.

    Example:
        >>> DartboardConfig(top_k=8, reranker_type="cosine").triage_k
        100
        >>> DartboardConfig(top_k=0)
        Traceback (most recent call last):
        dartboard.errors.ConfigError: top_k must be a whole number in [1, 20], got 0
    """

    sigma: float | Auto = "auto"
    top_k: int = 5
    triage_k: int = 100
    reranker_type: RerankerType = "hybrid"
    token_vocab_size: int = 5000
    log_eps: float = 1e-10
    sigma_min: float = SMALLEST_SIGMA
    distance: Distance = "scaled_cosine"
    score_scaling: ScoreScaling = "bounds"

    def __post_init__(self) -> None:
        check_number("sigma_min", self.sigma_min, 1e-12, 1.0)
        check_number("log_eps", self.log_eps, 0.0, 1e-3)
        if self.sigma != "auto":
            check_number("sigma", self.sigma, self.sigma_min, LARGEST_SIGMA, " or be 'auto'")
        check_whole("top_k", self.top_k, 1, 20)
        check_whole("triage_k", self.triage_k, self.top_k, 1000)
        check_whole("token_vocab_size", self.token_vocab_size, 1000, 50000)
        check_choice("reranker_type", self.reranker_type, RERANKERS)
        check_choice("distance", self.distance, DISTANCES)
        check_choice("score_scaling", self.score_scaling, SCALINGS)


def check_number(name: str, value: Any, low: float, high: float, otherwise: str = "") -> None:
    """Refuse what is no finite number in [low, high]."""
    usable = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not usable or not low <= value <= high:
        raise ConfigError(f"{name} must be in [{low:g}, {high:g}]{otherwise}, got {value!r}", field=name)


def check_whole(name: str, value: Any, low: int, high: float) -> None:
    """Refuse what is no whole number in [low, high]."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not low <= int(value) <= high:
        allowed = f">= {low}" if high == math.inf else f"in [{low}, {high}]"
        raise ConfigError(f"{name} must be a whole number {allowed}, got {value!r}", field=name)


def check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Refuse what is not one of the names allowed."""
    if value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(allowed)}, got {value!r}", field=name)
