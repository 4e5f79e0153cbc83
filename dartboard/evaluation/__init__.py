"""Evaluation: measures, comparisons and reports from runs and judgements.

The specification's metrics for one list are functions (:func:`ndcg_at_k` …). :func:`evaluate` computes
measures by name (``"ndcg@10"``) for all queries of a run at once. :func:`evaluate_dataset` runs systems on a
data set and compares them, and :func:`write_report` writes the results to a folder. Add a new metric to
``metric_formulas`` and ``measures``, and a new baseline to ``baselines`` and ``registry``.
"""

from dartboard.evaluation.alpha_fit import AlphaFit, fit_alpha
from dartboard.evaluation.baselines import System
from dartboard.evaluation.experiment import Outcome, evaluate_dataset
from dartboard.evaluation.judged_run import JudgedRun, Run
from dartboard.evaluation.judgements import Content, Judgements
from dartboard.evaluation.measures import MEASURES, Measure, Scores, evaluate
from dartboard.evaluation.metrics import (
    alpha_ndcg,
    average_precision,
    cluster_coverage,
    distinct_base_share,
    f1_diversity,
    hit_rate_at_k,
    intra_list_distance,
    jaccard,
    ndcg_at_k,
    pairwise_diversity,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
    set_recall,
    subtopic_recall,
    success_at_k,
)
from dartboard.evaluation.report import write_report
from dartboard.evaluation.settings import EvaluationConfig

__all__ = [
    "MEASURES",
    "AlphaFit",
    "Content",
    "EvaluationConfig",
    "JudgedRun",
    "Judgements",
    "Measure",
    "Outcome",
    "Run",
    "Scores",
    "System",
    "alpha_ndcg",
    "average_precision",
    "cluster_coverage",
    "distinct_base_share",
    "evaluate",
    "evaluate_dataset",
    "f1_diversity",
    "fit_alpha",
    "hit_rate_at_k",
    "intra_list_distance",
    "jaccard",
    "ndcg_at_k",
    "pairwise_diversity",
    "precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "set_recall",
    "subtopic_recall",
    "success_at_k",
    "write_report",
]
