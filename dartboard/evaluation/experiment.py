"""From a configuration to results: one JSON-ready record per data set.

The records contain everything that reports show, and nothing that differs between runs: the same seed gives
the same bytes. Times are stored separately.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.embeddings import EmbeddingModel
from dartboard.embeddings.base import PairScorer
from dartboard.errors import ConfigError
from dartboard.evaluation.baselines import Oracle, RecordedRun, RetrieverSystem
from dartboard.evaluation.journal import Journal, file_name
from dartboard.evaluation.judgements import Content, Judgements
from dartboard.evaluation.measures import (
    NEEDS_A_MODEL,
    Measure,
    Scores,
    at_depths,
    available,
    evaluate,
    headline,
    with_distinct,
)
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.registry import AvailableSystems, choose
from dartboard.evaluation.runner import Listener, Runs, answer, identity, silent
from dartboard.evaluation.sensitivity import redundancy_levels, sigma_sweep
from dartboard.evaluation.settings import REFERENCE, EvaluationConfig
from dartboard.statistics import bootstrap, compare, holm
from dartboard.types import Dataset

DIGITS = 6
ELSEWHERE = (Oracle, RecordedRun, RetrieverSystem)
"""Systems that do not choose from the candidates of a query."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Results of one data set: ``record`` for reports; runs, scores per query, and seconds.

    ``candidates`` are those of each query with their cosine, ``selecting`` the systems that chose from them.
    ``added`` are scores of a measure that was computed elsewhere, possibly on other queries.
    """

    record: dict[str, Any]
    runs: Runs
    scores: dict[str, Scores]
    candidates: dict[str, dict[str, float]] = field(default_factory=dict)
    selecting: frozenset[str] = frozenset()
    seconds: dict[str, list[float]] = field(default_factory=dict)
    added: dict[str, Scores] = field(default_factory=dict)


def evaluate_dataset(
    dataset: Dataset,
    config: EvaluationConfig,
    *,
    scorer: Callable[[], PairScorer] | None = None,
    model: Callable[[], EmbeddingModel] | None = None,
    journal_dir: Path | None = None,
    resume: bool = False,
    listener: Listener = silent,
) -> Outcome:
    """Run all systems, measure them, and compare them with the reference.

    Args:
        dataset: Chunks, queries and judgements, from :mod:`dartboard.datasets`.
        config: Systems, measures, depths and seeds.
        scorer: Makes the pair scorer of systems that read texts; by default late interaction.
        model: Returns the model that embedded the data set, if it is not the default one.
        journal_dir: The folder of finished questions.
        resume: Continue from the journal.
        listener: Called with the progress.

    Raises:
        ConfigError: no query is judged, the reference is not among the systems, or the data lacks a measure.
    """
    judgements, content = Judgements.of(dataset), Content.of(dataset)
    if not judgements.query_ids:
        raise ConfigError(f"data set {dataset.name!r} has no judged query: nothing to measure")
    chosen = choose(config.retrievers, dataset, judgements, scorer=scorer, model=model, seed=config.seed)
    _check_reference(config, chosen)
    measures = _measures(config, judgements, content)
    triage = Triage(dataset, config.triage_k)
    depth = max(measure.k or 1 for measure in measures)

    journal: Journal | None = None
    if journal_dir is not None:
        made_for = identity(dataset, depth=depth, triage_k=config.triage_k, seed=config.seed)
        journal = Journal(journal_dir / f"{file_name(dataset.name)}.jsonl", made_for, resume=resume)
    with journal or nullcontext():
        runs, seconds = answer(
            triage,
            judgements.query_ids,
            chosen.systems,
            depth=depth,
            workers=config.workers,
            journal=journal,
            listener=listener,
        )
    scores = {
        name: Scores.mean_of([evaluate(one, judgements, measures, content=content) for one in seeded])
        for name, seeded in runs.items()
    }
    record = _record(dataset, config, judgements, chosen, measures, scores)
    record["sweep"] = record["redundancy"] = None
    if config.sigma_sweep and any(system.name == "dartboard" for system in chosen.systems):
        record["sweep"] = sigma_sweep(triage, judgements, record["headline"], config, listener=listener)
    if any(config.copies):
        record["redundancy"] = redundancy_levels(dataset, chosen.systems, config, listener=listener)
    return Outcome(
        record=rounded(record),
        runs=runs,
        scores=scores,
        candidates={query_id: triage.candidates(query_id) for query_id in judgements.query_ids},
        selecting=frozenset(one.name for one in chosen.systems if not isinstance(one, ELSEWHERE)),
        seconds=seconds,
    )


def _check_reference(config: EvaluationConfig, chosen: AvailableSystems) -> None:
    """An explicit reference must be among the systems; the default one is replaced if it is not."""
    names = [system.name for system in chosen.systems]
    if config.reference not in (*names, *chosen.skipped, REFERENCE):
        raise ConfigError(
            f"reference {config.reference!r} does not take part: choose one of {', '.join(names)}"
        )


def _measures(config: EvaluationConfig, judgements: Judgements, content: Content) -> list[Measure]:
    can = available(judgements, content, [Measure.parse(name).name for name in config.metrics])
    wanted = with_distinct(at_depths(config.metrics or can, config.k_values), judgements)
    if "answer" in {measure.name for measure in wanted}:
        raise ConfigError(NEEDS_A_MODEL)
    if missing := [str(measure) for measure in wanted if measure.name not in can]:
        raise ConfigError(f"the data set cannot answer {', '.join(missing)}: it can answer {', '.join(can)}")
    return wanted


def _record(
    dataset: Dataset,
    config: EvaluationConfig,
    judgements: Judgements,
    chosen: AvailableSystems,
    measures: Sequence[Measure],
    scores: Mapping[str, Scores],
) -> dict[str, Any]:
    reference = config.reference if config.reference in scores else next(iter(scores))
    return {
        "dataset": dataset.name,
        "type": dataset.metadata.get("type", "unknown"),
        "chunks": len(dataset.chunks),
        "queries": len(dataset.queries),
        "judged": len(judgements.query_ids),
        "relevant_per_query": float(judgements.plain.relevant_counts.mean()),
        **least_grade(judgements),
        "distinct_per_query": float(judgements.relevant_counts.mean()),
        "reference": reference,
        "headline": headline(measures, judgements, config.headline_k, config.metrics),
        "asked": asked_measures(config, measures),
        "measures": {str(measure): measure.title for measure in measures},
        "systems": with_intervals(scores, config),
        "seeds": {system.name: len(system.seeds) for system in chosen.systems},
        "skipped": chosen.skipped,
        "comparisons": comparisons(scores, reference, config),
    }


def asked_measures(config: EvaluationConfig, measures: Sequence[Measure]) -> list[str]:
    """The measures that were asked for, at the depth of the headline or their own."""
    asked = [Measure.parse(name) for name in config.metrics]
    wanted = [one if one.k else Measure(one.name, config.headline_k) for one in asked]
    return [str(one) for one in wanted if one in measures]


def least_grade(judgements: Judgements) -> dict[str, float]:
    """For the record: the level of relevance, where it is not any grade above 0."""
    return {"least_grade": judgements.least_grade} if judgements.least_grade >= 1 else {}


def with_intervals(scores: Mapping[str, Scores], config: EvaluationConfig) -> dict[str, Any]:
    """The mean of each system and measure, with a bootstrap interval over queries."""
    names = [(system, measure) for system, found in scores.items() for measure in found.values]
    columns = np.stack([scores[system].values[measure] for system, measure in names], axis=1)
    low, high = bootstrap(columns, resamples=config.resamples, seed=config.seed)
    table: dict[str, dict[str, Any]] = {system: {} for system in scores}
    for place, (system, measure) in enumerate(names):
        mean = float(columns[:, place].mean())
        table[system][measure] = {"mean": mean, "low": float(low[place]), "high": float(high[place])}
    return table


def comparisons(scores: Mapping[str, Scores], reference: str, config: EvaluationConfig) -> dict[str, Any]:
    """For each measure, every other system against the reference, with p-values corrected over systems."""
    others = [name for name in scores if name != reference]
    if not others:
        return {}
    base = scores[reference].values
    pairs = [(measure, name) for measure in base for name in others]
    compared = compare(
        np.stack([scores[name].values[measure] for measure, name in pairs], axis=1),
        np.stack([base[measure] for measure, _ in pairs], axis=1),
        resamples=config.resamples,
        seed=config.seed,
    )
    found = dict(zip(pairs, compared, strict=True))
    table: dict[str, dict[str, Any]] = {}
    for measure in base:
        corrected = holm({name: found[measure, name].p for name in others})
        table[measure] = {name: asdict(found[measure, name]) | {"p_holm": corrected[name]} for name in others}
    return table


def rounded(value: Any) -> Any:
    """Round all floats to six digits: readable, and the same on machines that sum differently."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(one) for one in value]
    return value


def add_measure(
    outcome: Outcome,
    config: EvaluationConfig,
    measure: Measure,
    scores: Mapping[str, Scores],
    *,
    about: Mapping[str, Any],
) -> Outcome:
    """Add a measure of every system that was computed elsewhere; ``about`` describes it.

    It may cover fewer queries than the others, such as those with a known answer.
    """
    record = dict(outcome.record)
    intervals = rounded(with_intervals(scores, config))
    record["measures"] = {**record["measures"], str(measure): measure.title}
    record["systems"] = {name: {**known, **intervals[name]} for name, known in record["systems"].items()}
    record["comparisons"] = {
        **record["comparisons"],
        **rounded(comparisons(scores, record["reference"], config)),
    }
    record[measure.name] = dict(about)
    return replace(outcome, record=record, added={**outcome.added, **scores})
