"""Measures as values: ``ndcg@10`` names what is computed, and :data:`MEASURES` defines how.

A new measure is a function in :mod:`dartboard.evaluation.metric_formulas` and a line in that table.

>>> Measure.parse("ndcg@10")
Measure(name='ndcg', k=10)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.evaluation import metric_formulas as formulas
from dartboard.evaluation.judged_run import JudgedRun, Run
from dartboard.evaluation.judgements import Content, Judgements
from dartboard.plugins import Plugin, find, names
from dartboard.types import FloatArray


@dataclass(frozen=True, slots=True)
class Kind:
    """How a measure is computed for all queries, its title, and what it needs from a data set."""

    compute: Callable[[JudgedRun, int | None], FloatArray]
    title: str
    needs: str = ""


NEEDS_A_MODEL = "answer is measured by asking a model: dartboard eval --answers MODEL"


def _needs_a_model(run: JudgedRun, k: int | None) -> FloatArray:
    raise ConfigError(NEEDS_A_MODEL)


def _plain(compute: Callable[[JudgedRun, int | None], FloatArray]) -> Callable[..., FloatArray]:
    """The measure by chunk ids, as in the specification: a copy is a chunk like any other."""
    return lambda run, k: compute(run.plain, k)


MEASURES: dict[str, Kind] = {
    "precision": Kind(_plain(formulas.precision), "Precision"),
    "recall": Kind(_plain(formulas.recall), "Recall"),
    "hit_rate": Kind(_plain(formulas.hit_rate), "Hit rate"),
    "mrr": Kind(_plain(formulas.reciprocal_rank), "MRR"),
    "map": Kind(_plain(formulas.average_precision), "MAP"),
    "ndcg": Kind(_plain(formulas.ndcg), "nDCG"),
    "ndcg_linear": Kind(_plain(formulas.ndcg_linear), "nDCG, linear gains"),
    "distinct_precision": Kind(formulas.precision, "Distinct precision", "bases"),
    "distinct_recall": Kind(formulas.recall, "Distinct recall", "bases"),
    "distinct_map": Kind(formulas.average_precision, "Distinct MAP", "bases"),
    "distinct_ndcg": Kind(formulas.ndcg, "Distinct nDCG", "bases"),
    "set_recall": Kind(formulas.set_recall, "Set recall"),
    "success": Kind(formulas.success, "Success"),
    "jaccard": Kind(formulas.jaccard, "Jaccard"),
    "subtopic_recall": Kind(formulas.subtopic_recall, "Subtopic recall", "facets"),
    "alpha_ndcg": Kind(formulas.alpha_ndcg, "α-nDCG", "facets"),
    "diversity": Kind(formulas.diversity, "Diversity", "vectors"),
    "intra_list_distance": Kind(formulas.intra_list_distance, "Intra-list distance", "vectors"),
    "cluster_coverage": Kind(formulas.cluster_coverage, "Cluster coverage", "clusters"),
    "distinct_share": Kind(formulas.distinct_share, "Distinct share", "bases"),
    "f1_diversity": Kind(formulas.f1_diversity, "F1 of precision and diversity", "vectors"),
    "answer": Kind(_needs_a_model, "Answer", "answers"),
}
NEEDS = ("", "facets", "vectors", "clusters", "bases")
"""What a measure may need from a data set."""


def kind_of(name: str) -> Kind:
    """The definition of a measure: built-in, or from a plug-in."""
    if name in MEASURES:
        return MEASURES[name]
    plugin = find("metric", name)
    if plugin is None:
        known = ", ".join((*MEASURES, *names("metric")))
        raise ConfigError(f"unknown measure {name!r}: choose from {known}")
    return plugged(plugin)


def plugged(plugin: Plugin) -> Kind:
    """A plug-in's measure: a :class:`Kind`, or a function of a judged run and a depth."""
    given = plugin.load()
    kind = given if isinstance(given, Kind) else Kind(given, plugin.name)
    if not callable(kind.compute) or kind.needs not in NEEDS:
        raise ConfigError(
            f"{plugin} is not a measure: expected a function of a run and a depth, or a Kind with one, "
            f"that needs one of {', '.join(filter(None, NEEDS))}, or nothing"
        )
    return Kind(lambda run, k: _values(plugin, kind, run, k), kind.title, kind.needs)


def _values(plugin: Plugin, kind: Kind, run: JudgedRun, k: int | None) -> FloatArray:
    """The result of a plug-in: one finite number per query, or an error that names the plug-in."""
    values: FloatArray = plugin.call(lambda: np.asarray(kind.compute(run, k), dtype=np.float64))
    if values.shape != (len(run),) or not np.isfinite(values).all():
        raise ConfigError(f"{plugin} must give {len(run)} finite numbers (one per query): {values.shape}")
    return values


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """A measure of the first ``k`` picks, or of the whole list if k is None."""

    name: str
    k: int | None = None

    def __post_init__(self) -> None:
        kind_of(self.name)
        if self.k is not None and (isinstance(self.k, bool) or self.k < 1):
            raise ConfigError(f"{self.name}@{self.k}: the number after @ must be >= 1")

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """``name`` or ``name@k``."""
        name, at, depth = text.strip().partition("@")
        if at and not depth.isdecimal():
            raise ConfigError(f"{text!r}: @ must be followed by a whole number, as in ndcg@10")
        return cls(name, int(depth) if at else None)

    @property
    def title(self) -> str:
        """For readers."""
        return kind_of(self.name).title + ("" if self.k is None else f"@{self.k}")


def at_depths(names: Iterable[str], k_values: Sequence[int]) -> list[Measure]:
    """Every measure at every depth; one with its own depth is unchanged."""
    wanted: dict[Measure, None] = {}
    for name in names:
        given = Measure.parse(name)
        depths: Sequence[int | None] = [given.k] if given.k else k_values
        wanted.update(dict.fromkeys(Measure(given.name, k) for k in depths))
    return list(wanted)


def with_distinct(measures: Iterable[Measure], judgements: Judgements) -> list[Measure]:
    """The measures; if chunks have copies, each is followed by its version over bases."""
    wanted: dict[Measure, None] = {}
    for measure in measures:
        wanted[measure] = None
        if judgements.grouped and (twin := f"distinct_{measure.name}") in MEASURES:
            wanted[Measure(twin, measure.k)] = None
    return list(wanted)


def available(judgements: Judgements, content: Content | None, asked: Iterable[str] = ()) -> list[str]:
    """The measures that the data set supports: built-in ones, and the ``asked`` ones of plug-ins."""
    has = {
        "": True,
        "facets": bool(judgements.facets),
        "vectors": content is not None,
        "clusters": content is not None and bool(content.clusters),
        "bases": judgements.grouped,
        "answers": False,  # needs a model: see dartboard.answering.accuracy
    }
    return [name for name in dict.fromkeys((*MEASURES, *asked)) if has[kind_of(name).needs]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """``values[measure]`` is ``(Q,)``, in the order of ``query_ids``."""

    query_ids: Sequence[str]
    values: Mapping[str, FloatArray]

    @property
    def means(self) -> dict[str, float]:
        """The mean of each measure over the queries; 0 without queries."""
        return {name: float(column.mean()) if len(column) else 0.0 for name, column in self.values.items()}

    def of(self, query_id: str) -> dict[str, float]:
        """All measures of one query."""
        place = list(self.query_ids).index(query_id)
        return {name: float(column[place]) for name, column in self.values.items()}

    @classmethod
    def mean_of(cls, several: Sequence[Self]) -> Self:
        """The mean of several runs per query, such as the seeds of a random system."""
        first = several[0]
        if any(list(one.query_ids) != list(first.query_ids) for one in several):
            raise InvalidInputError("scores of different queries cannot be averaged")
        return cls(
            query_ids=first.query_ids,
            values={name: np.mean([one.values[name] for one in several], axis=0) for name in first.values},
        )


def evaluate(
    run: Run,
    judgements: Judgements,
    measures: Iterable[str | Measure],
    *,
    content: Content | None = None,
) -> Scores:
    """Compute every measure for every judged query; a query that the run lacks counts as 0.

    Args:
        run: For each query id, chunk ids, best first, or ids with scores.
        judgements: What is relevant.
        measures: Names such as ``"ndcg@10"``, or :class:`Measure` values.
        content: Vectors and clusters of the chunks, for measures that need them.

    Raises:
        ConfigError: a measure is unknown, or the judgements or the content lack what it needs.

    >>> judged = Judgements(qrels={"q": {"a": 1.0, "b": 1.0}})
    >>> evaluate({"q": ["a", "c"]}, judged, ["recall@2"]).means
    {'recall@2': 0.5}
    """
    wanted = [one if isinstance(one, Measure) else Measure.parse(one) for one in measures]
    for one in wanted:
        if kind_of(one.name).needs == "facets" and not judgements.facets:
            raise ConfigError(f"{one} needs facets, and these judgements have none")
    judged = JudgedRun.of(run, judgements, content)
    values = {str(one): kind_of(one.name).compute(judged, one.k) for one in wanted}
    return Scores(query_ids=judgements.query_ids, values=values)


def headline_order(judgements: Judgements, k: int) -> list[str]:
    """Measures, the one that fits the judgements best first; the first available one is the headline.

    ==========================================  ===================================================
    required kernels that fit into a list of k  ``set_recall``: were they found?
    facets that several passages cover          ``subtopic_recall``: which facets were found?
    chunks with copies                          ``distinct_ndcg``: a copy gains nothing
    only relevant passages                      ``ndcg``
    ==========================================  ===================================================

    α-nDCG is not used as the headline: if several passages cover the only facet of a query, it rewards a list
    for repeating that facet.
    """
    few = float(judgements.relevant_counts.mean()) <= k
    shared = any(len(ids) > 1 for facets in judgements.facets.values() for ids in facets.values())
    suits = {
        "set_recall": bool(judgements.kernels) and few,
        "subtopic_recall": shared,
        "distinct_ndcg": judgements.grouped,
        "ndcg": True,
        "distinct_recall": judgements.grouped,
        "recall": True,
    }
    return [name for name, holds in suits.items() if holds]


def headline_measure(judgements: Judgements, k: int) -> Measure:
    """The headline measure of a data set at a depth."""
    return Measure(headline_order(judgements, k)[0], k)


def headline(
    measures: Sequence[Measure], judgements: Judgements, k: int, asked: Sequence[str] = ()
) -> dict[str, str]:
    """The headline: a measure of quality, and diversity.

    It is the first measure that was asked for; without any, the best fitting one.
    """
    given = [one for one in map(Measure.parse, asked) if one.name != "diversity"]
    if given:
        quality = given[0].name
    else:
        names = {measure.name for measure in measures if measure.k == k}
        order = [*headline_order(judgements, k), *sorted(names)]
        quality = next((name for name in order if name in names), measures[0].name)
    at = [measure for measure in measures if measure.name == quality]
    chosen = {"quality": str(min(at, key=lambda one: abs((one.k or 0) - k)))}
    if any(measure == Measure("diversity", k) for measure in measures):
        chosen["diversity"] = f"diversity@{k}"
    return chosen
