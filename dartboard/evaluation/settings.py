"""Configuration of an evaluation: the specification's fields first, then ours."""

from dataclasses import dataclass, field

from dartboard.errors import ConfigError
from dartboard.evaluation.measures import Measure
from dartboard.evaluation.registry import check_names

DEFAULT_DEPTHS = (1, 3, 5, 10)


REFERENCE = "dartboard"
"""The default reference system."""


@dataclass(slots=True)
class EvaluationConfig:
    """Configuration of an evaluation.

    Args:
        datasets: Names or paths.
        retrievers: Names of systems or groups (:mod:`dartboard.evaluation.registry`).
        metrics: Measures; each is computed at all ``k_values`` unless it has its own depth. None means all
            that the data supports.
        k_values: Depths.
        output_dir: Where :func:`~dartboard.evaluation.write_report` writes.
        triage_k: How many candidates systems select from.
        reference: The system that all others are compared with.
        seed: Seed of resamples, copies and random systems.
        resamples: For intervals and permutation tests.
        workers: Questions at a time; by default one per processor.
        sigma_sweep: Whether Dartboard is run at many fixed σ.
        copies: Levels of redundancy: numbers of near-duplicates of every chunk to repeat the comparison with.
        copies_cosine: The cosine of these copies with their originals.

    Raises:
        ConfigError: a system or measure is unknown, or a number is out of range.
    """

    datasets: list[str]
    retrievers: list[str]
    metrics: list[str] = field(default_factory=list)
    k_values: list[int] = field(default_factory=lambda: list(DEFAULT_DEPTHS))
    output_dir: str = "results/"
    triage_k: int = 100
    reference: str = REFERENCE
    seed: int = 0
    resamples: int = 10_000
    workers: int | None = None
    sigma_sweep: bool = True
    copies: list[int] = field(default_factory=lambda: [0, 1, 3, 5])
    copies_cosine: float = 0.97

    def __post_init__(self) -> None:
        if not self.datasets:
            raise ConfigError("no data set to evaluate on: name at least one")
        if not self.retrievers:
            raise ConfigError("no system to evaluate: name at least one, or a group such as 'quick'")
        check_names(self.retrievers)
        for name in self.metrics:
            Measure.parse(name)
        if not self.k_values or any(isinstance(k, bool) or int(k) != k or k < 1 for k in self.k_values):
            raise ConfigError(f"k_values must be whole numbers >= 1, got {self.k_values}")
        if self.triage_k < max(self.k_values):
            raise ConfigError(
                f"triage_k = {self.triage_k} leaves fewer candidates than k = {max(self.k_values)} asks for"
            )
        if self.resamples < 100:
            raise ConfigError(f"resamples must be >= 100 for an interval, got {self.resamples}")
        if any(count < 0 for count in self.copies):
            raise ConfigError(f"copies must be >= 0, got {self.copies}")

    @property
    def headline_k(self) -> int:
        """The depth of the first page: 5 if requested, otherwise the one nearest to it."""
        return min(self.k_values, key=lambda k: (abs(k - 5), k))
