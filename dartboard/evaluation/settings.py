"""What an evaluation is asked to do: the specification's fields first, then ours."""

from dataclasses import dataclass, field

from dartboard.errors import ConfigError
from dartboard.evaluation.measures import Measure
from dartboard.evaluation.registry import check_names

DEFAULT_DEPTHS = (1, 3, 5, 10)


REFERENCE = "dartboard"
"""What systems are compared with unless another one is named."""


@dataclass(slots=True)
class EvaluationConfig:
    """What an evaluation is asked to do.

    Args:
        datasets: names or paths.
        retrievers: names of systems or of groups of them (:mod:`dartboard.evaluation.registry`).
        metrics: measures; each is computed at every one of ``k_values`` unless it names its own depth. None
            means all that the data can answer.
        k_values: depths.
        output_dir: where :func:`~dartboard.evaluation.write_report` writes.
        triage_k: candidates that systems choose from.
        reference: the system that all others are compared with.
        seed: of resamples, copies and random systems.
        resamples: for intervals and permutation tests.
        workers: questions at a time; one a processor by default.
        sigma_sweep: whether Dartboard is tried at many fixed σ.
        copies: levels of redundancy to repeat the comparison at: so many near-copies of every chunk.
        copies_cosine: how close these copies are.

    Raises:
        ConfigError: an unknown system or measure, or a number out of its range.
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
        """The depth that the first page is about: 5 where it is asked for, else the one nearest to it."""
        return min(self.k_values, key=lambda k: (abs(k - 5), k))
