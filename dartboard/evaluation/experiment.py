"""From a configuration to results: one plain, JSON-ready record a data set.

Everything that reports show is in these records, and nothing that differs from run to run: the same seed
gives the same bytes. Times are kept apart.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.embeddings import EmbeddingModel
from dartboard.embeddings.base import PairScorer
from dartboard.errors import ConfigError
from dartboard.evaluation import redundancy
from dartboard.evaluation.catalogue import Chosen, choose
from dartboard.evaluation.content import Content
from dartboard.evaluation.headline import headline
from dartboard.evaluation.journal import Journal, file_name
from dartboard.evaluation.judgements import Judgements
from dartboard.evaluation.measures import Measure, at_depths, available, evaluate, with_distinct
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.runner import Elsewhere, Listener, Runs, answer, identity, silent
from dartboard.evaluation.scores import Scores
from dartboard.evaluation.settings import REFERENCE, EvaluationConfig
from dartboard.evaluation.significance import bootstrap, compare_columns, holm
from dartboard.evaluation.sweep import sigma_sweep
from dartboard.evaluation.systems import Chance, Pyversity, Selecting
from dartboard.types import Dataset

DIGITS = 6


@dataclass(slots=True, kw_only=True)
class Outcome:
    """One data set's results: ``record`` for reports; runs, scores a query and seconds beside it.

    ``added`` are scores of a measure that was taken elsewhere, about queries of its own.
    """

    record: dict[str, Any]
    runs: Runs
    scores: dict[str, Scores]
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
    elsewhere: Elsewhere | None = None,
    listener: Listener = silent,
) -> Outcome:
    """Let all systems answer, measure them, compare them with the reference.

    ``model`` gives the model that embedded the data set, where it is not the default one; retrievers ask it.
    With ``journal_dir``, finished questions are kept there, and ``resume`` goes on from them. Systems that
    can run ``elsewhere`` do so.
    """
    judgements, content = Judgements.of(dataset), Content.of(dataset)
    if not judgements.query_ids:
        raise ConfigError(f"data set {dataset.name!r} has no judged query: nothing to measure")
    chosen = choose(config.retrievers, dataset, judgements, scorer=scorer, model=model)
    _check_reference(config, chosen)
    measures = _measures(config, judgements, content)
    triage = Triage(dataset, config.triage_k)
    depth = max(measure.k or 1 for measure in measures)

    def run(journal: Journal | None) -> tuple[Runs, dict[str, list[float]]]:
        return answer(
            triage,
            judgements.query_ids,
            chosen.systems,
            depth=depth,
            workers=config.workers,
            journal=journal,
            elsewhere=elsewhere,
            listener=listener,
        )

    if journal_dir is None:
        runs, seconds = run(None)
    else:
        made_for = identity(dataset, depth=depth, triage_k=config.triage_k)
        with Journal(journal_dir / f"{file_name(dataset.name)}.jsonl", made_for, resume=resume) as journal:
            runs, seconds = run(journal)
    scores = {
        name: Scores.mean_of([evaluate(one, judgements, measures, content=content) for one in seeded])
        for name, seeded in runs.items()
    }
    record = _record(dataset, config, judgements, chosen, measures, scores)
    extras = _Extras(dataset, config, judgements, content, triage, chosen, elsewhere, listener)
    record["sweep"] = extras.sweep(record["headline"])
    record["redundancy"] = extras.redundancy()
    return Outcome(record=rounded(record), runs=runs, scores=scores, seconds=seconds)


def _check_reference(config: EvaluationConfig, chosen: Chosen) -> None:
    """Whoever names a reference means it; the default gives way where it does not take part."""
    names = [system.name for system in chosen.systems]
    if config.reference not in (*names, *chosen.skipped, REFERENCE):
        raise ConfigError(
            f"reference {config.reference!r} does not take part: choose one of {', '.join(names)}"
        )


def _measures(config: EvaluationConfig, judgements: Judgements, content: Content) -> list[Measure]:
    can = available(judgements, content, [Measure.parse(name).name for name in config.metrics])
    wanted = with_distinct(at_depths(config.metrics or can, config.k_values), judgements)
    if missing := [str(measure) for measure in wanted if measure.name not in can]:
        raise ConfigError(f"the data set cannot answer {', '.join(missing)}: it can answer {', '.join(can)}")
    return wanted


def _record(
    dataset: Dataset,
    config: EvaluationConfig,
    judgements: Judgements,
    chosen: Chosen,
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
        "distinct_per_query": float(judgements.relevant_counts.mean()),
        "reference": reference,
        "headline": headline(measures, judgements, config.headline_k),
        "measures": {str(measure): measure.title for measure in measures},
        "systems": with_intervals(scores, config),
        "seeds": {system.name: len(system.seeds) for system in chosen.systems},
        "skipped": chosen.skipped,
        "comparisons": comparisons(scores, reference, config),
    }


def with_intervals(scores: Mapping[str, Scores], config: EvaluationConfig) -> dict[str, Any]:
    """For each system and measure its mean, with a bootstrap interval over queries."""
    names = [(system, measure) for system, found in scores.items() for measure in found.values]
    columns = np.stack([scores[system].values[measure] for system, measure in names], axis=1)
    low, high = bootstrap(columns, resamples=config.resamples, seed=config.seed)
    table: dict[str, dict[str, Any]] = {system: {} for system in scores}
    for place, (system, measure) in enumerate(names):
        mean = float(columns[:, place].mean())
        table[system][measure] = {"mean": mean, "low": float(low[place]), "high": float(high[place])}
    return table


def comparisons(scores: Mapping[str, Scores], reference: str, config: EvaluationConfig) -> dict[str, Any]:
    """For each measure, every other system against the reference, p values corrected over systems."""
    others = [name for name in scores if name != reference]
    if not others:
        return {}
    base = scores[reference].values
    pairs = [(measure, name) for measure in base for name in others]
    compared = compare_columns(
        np.stack([scores[name].values[measure] for measure, name in pairs], axis=1),
        np.stack([base[measure] for measure, _ in pairs], axis=1),
        resamples=config.resamples,
        seed=config.seed,
    )
    found = dict(zip(pairs, compared, strict=True))
    table: dict[str, dict[str, Any]] = {}
    for measure in base:
        by_permutation = holm({name: found[measure, name].permutation_p for name in others})
        by_t = holm({name: found[measure, name].t_p for name in others})
        table[measure] = {
            name: asdict(found[measure, name])
            | {"permutation_holm": by_permutation[name], "t_holm": by_t[name]}
            for name in others
        }
    return table


@dataclass(frozen=True)
class _Extras:
    """What a page shows beside the comparison itself."""

    dataset: Dataset
    config: EvaluationConfig
    judgements: Judgements
    content: Content
    triage: Triage
    chosen: Chosen
    elsewhere: Elsewhere | None
    listener: Listener

    def sweep(self, headline: Mapping[str, str]) -> dict[str, Any] | None:
        """Dartboard along σ, where it takes part."""
        if not self.config.sigma_sweep or all(s.name != "dartboard" for s in self.chosen.systems):
            return None
        return sigma_sweep(
            self.triage,
            self.judgements,
            self.content,
            [Measure.parse(name) for name in headline.values()],
            workers=self.config.workers,
            seed=self.config.seed,
            elsewhere=self.elsewhere,
            listener=lambda _, done, total: self.listener("Sweeping sigma", done, total),
        )

    def _recall(self) -> str:
        """Recall of what a list can hold, copies counting once: of the kernel or, where a query has none, of
        what is relevant, if that is few; else of the facets."""
        few = float(self.judgements.relevant_counts.mean()) <= self.config.headline_k
        if self.judgements.facets and not few:
            return "subtopic_recall"
        return "set_recall"

    def redundancy(self) -> dict[str, Any] | None:
        """The comparison with near-copies, for systems that look at vectors alone."""
        levels = self.config.copies
        if not any(levels):
            return None
        levels = sorted({0, *levels})  # beside the corpus as it is
        if reason := redundancy.why_not(self.dataset, levels):
            return {"skipped": reason}
        return redundancy.redundancy_levels(
            self.dataset,
            [s for s in self.chosen.systems if isinstance(s, (Selecting, Chance, Pyversity))],
            Measure(self._recall(), self.config.headline_k),
            copies=levels,
            cosine=self.config.copies_cosine,
            triage_k=self.config.triage_k,
            workers=self.config.workers,
            seed=self.config.seed,
            elsewhere=self.elsewhere,
            listener=lambda _, done, total: self.listener("Adding near-copies", done, total),
        )


def rounded(value: Any) -> Any:
    """Floats to six digits, wherever they stand: readable, and the same on machines that add otherwise."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(one) for one in value]
    return value
