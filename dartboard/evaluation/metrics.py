"""The specification's metrics, for one list at a time.

Each applies a formula for all queries (:mod:`~dartboard.evaluation.metric_formulas`) to one, so that each
rule exists once. A repeated id counts once, at its first rank.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.evaluation import metric_formulas as formulas
from dartboard.evaluation.judged_run import JudgedRun
from dartboard.evaluation.judgements import Judgements
from dartboard.selection.kernel import check_distance, distances, prepared
from dartboard.types import Chunk, FloatArray
from dartboard.utils import cosine_similarity


def precision_at_k(retrieved: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """``|relevant ∩ retrieved[:k]| / k``."""
    return _one(formulas.precision, retrieved, dict.fromkeys(relevant, 1.0), k)


def recall_at_k(retrieved: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """``|relevant ∩ retrieved[:k]| / |relevant|``; 0 if nothing is relevant."""
    return _one(formulas.recall, retrieved, dict.fromkeys(relevant, 1.0), k)


def hit_rate_at_k(retrieved: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """1 if at least one of the first k is relevant."""
    return _one(formulas.hit_rate, retrieved, dict.fromkeys(relevant, 1.0), k)


def reciprocal_rank(retrieved: Sequence[str], relevant: Sequence[str], k: int | None = None) -> float:
    """1 / the rank of the first relevant one; its mean over queries is MRR."""
    return _one(formulas.reciprocal_rank, retrieved, dict.fromkeys(relevant, 1.0), k)


def average_precision(retrieved: Sequence[str], relevant: Sequence[str], k: int | None = None) -> float:
    """The mean over all relevant chunks of the precision at their rank; its mean over queries is MAP."""
    return _one(formulas.average_precision, retrieved, dict.fromkeys(relevant, 1.0), k)


def ndcg_at_k(retrieved: Sequence[str], relevance_scores: Mapping[str, float], k: int) -> float:
    """``DCG@k / IDCG@k`` with ``DCG@k = Σ (2^rel_i - 1) / log2(i + 2)``, i from 0."""
    return _one(formulas.ndcg, retrieved, relevance_scores, k)


def set_recall(retrieved: Sequence[str], kernel: Sequence[str], k: int) -> float:
    """The share of the required kernel among the first k."""
    return _one(formulas.set_recall, retrieved, dict.fromkeys(kernel, 1.0), k)


def success_at_k(retrieved: Sequence[str], kernel: Sequence[str], k: int) -> float:
    """1 if the whole kernel is among the first k."""
    return _one(formulas.success, retrieved, dict.fromkeys(kernel, 1.0), k)


def jaccard(retrieved: Sequence[str], kernel: Sequence[str]) -> float:
    """``|retrieved ∩ kernel| / |retrieved ∪ kernel|``."""
    return _one(formulas.jaccard, list(dict.fromkeys(retrieved)), dict.fromkeys(kernel, 1.0), None)


def subtopic_recall(retrieved: Sequence[str], facets: Mapping[Hashable, Sequence[str]], k: int) -> float:
    """The share of the facets that one of the first k covers."""
    return float(formulas.subtopic_recall(_with_facets(retrieved, facets), _check_k(k))[0])


def alpha_ndcg(
    retrieved: Sequence[str],
    relevance_scores: Mapping[str, float] | None = None,
    similarity_matrix: npt.ArrayLike | None = None,
    alpha: float = 0.5,
    k: int = 10,
    *,
    facets: Mapping[Hashable, Sequence[str]] | None = None,
) -> float:
    """α-nDCG (Clarke et al., SIGIR 2008), from facets or from similarities.

    ``facets`` says which chunks cover which facet, as in TREC. Without facets, similarity replaces them: a
    pick of grade rel gains ``(2^rel - 1) · (1-α)^(sum of its similarities to the relevant picks before it)``.
    ``similarity_matrix``, ``(n, n)``, has rows in the order of ``relevance_scores``; the ideal list contains
    only relevant chunks, since others gain nothing. With similarities of 1 or 0, both give the same number.
    """
    formulas.check_alpha(alpha)
    _check_k(k)
    if facets is not None:
        if relevance_scores is not None or similarity_matrix is not None:
            raise ConfigError(
                "alpha_ndcg takes facets, or relevance_scores with a similarity_matrix: not both"
            )
        return float(formulas.alpha_ndcg(_with_facets(retrieved, facets), k, alpha)[0])
    if relevance_scores is None or similarity_matrix is None:
        raise ConfigError("alpha_ndcg needs facets, or relevance_scores with a similarity_matrix")
    return _soft_alpha_ndcg(retrieved, relevance_scores, similarity_matrix, alpha, k)


def pairwise_diversity(
    chunks: Sequence[Chunk], similarity_fn: Callable[[FloatArray, FloatArray], float] = cosine_similarity
) -> float:
    """1 - mean similarity over all pairs, clipped to [0, 1]; 0 for fewer than two chunks."""
    pairs = list(combinations(chunks, 2))
    if not pairs:
        return 0.0
    similarity = fmean(similarity_fn(left.embedding, right.embedding) for left, right in pairs)
    return min(1.0, max(0.0, 1.0 - similarity))


def intra_list_distance(chunks: Sequence[Chunk], distance: str = "scaled_cosine") -> float:
    """The mean distance over all pairs, in the distance of selection; 0 for fewer than two."""
    kind = check_distance(distance)
    if len(chunks) < 2:
        return 0.0
    vectors = prepared(np.stack([chunk.embedding for chunk in chunks]), kind)
    return float(distances(vectors, vectors, kind)[np.triu_indices(len(chunks), 1)].mean())


def cluster_coverage(retrieved_chunks: Sequence[Chunk], cluster_labels: Mapping[str, Hashable]) -> float:
    """Clusters of the retrieved chunks / all clusters; a chunk without a label covers none."""
    if not cluster_labels:
        raise InvalidInputError("cluster_labels is empty: give the cluster of each chunk of the corpus")
    covered = {cluster_labels[chunk.id] for chunk in retrieved_chunks if chunk.id in cluster_labels}
    return len(covered) / len(set(cluster_labels.values()))


def distinct_base_share(retrieved: Sequence[str], base_of: Mapping[str, str], k: int | None = None) -> float:
    """The share of the first k that remains if copies of one base count once."""
    picks = retrieved[: _check_k(k)]
    return len({base_of.get(pick, pick) for pick in picks}) / len(picks) if picks else 0.0


def f1_diversity(precision: float, diversity: float) -> float:
    """``2PD / (P + D)``; 0 if both are 0."""
    total = precision + diversity
    return 2.0 * precision * diversity / total if total else 0.0


def _one(
    measure: Callable[[JudgedRun, int | None], FloatArray],
    retrieved: Sequence[str],
    grades: Mapping[str, float],
    k: int | None,
) -> float:
    return float(measure(JudgedRun.of({"": retrieved}, Judgements(qrels={"": grades})), _check_k(k))[0])


def _with_facets(retrieved: Sequence[str], facets: Mapping[Hashable, Sequence[str]]) -> JudgedRun:
    return JudgedRun.of({"": retrieved}, Judgements(qrels={"": {}}, facets={"": facets}))


def _check_k(k: int | None) -> int | None:
    if k is not None and (isinstance(k, bool) or int(k) != k or k < 1):
        raise ConfigError(f"k must be a whole number >= 1, got {k!r}")
    return k


def _soft_alpha_ndcg(
    retrieved: Sequence[str], grades: Mapping[str, float], similarities: npt.ArrayLike, alpha: float, k: int
) -> float:
    similarity = np.asarray(similarities, dtype=np.float64)
    if similarity.shape != (len(grades), len(grades)) or not np.isfinite(similarity).all():
        raise InvalidInputError(
            f"similarity_matrix must be finite, with a row and a column for each of the {len(grades)} "
            f"relevance_scores in their order; got shape {similarity.shape}"
        )
    similarity = np.maximum(similarity, 0.0)
    gain = np.exp2(np.maximum(np.fromiter(grades.values(), dtype=np.float64), 0.0)) - 1.0
    place = {chunk_id: row for row, chunk_id in enumerate(grades)}
    picks = [place.get(chunk_id, -1) for chunk_id in dict.fromkeys(retrieved)][:k]
    best = _soft_dcg(_soft_ideal(gain, similarity, alpha, k, list(grades)), gain, similarity, alpha)
    return _soft_dcg(picks, gain, similarity, alpha) / best if best else 0.0


def _soft_dcg(picks: Sequence[int], gain: FloatArray, similarity: FloatArray, alpha: float) -> float:
    total, repeated = 0.0, np.zeros(len(gain))
    for rank, pick in enumerate(picks):
        if pick >= 0 and gain[pick] > 0:
            total += float(gain[pick] * (1.0 - alpha) ** repeated[pick] / np.log2(rank + 2.0))
            repeated += similarity[pick]
    return total


def _soft_ideal(
    gain: FloatArray, similarity: FloatArray, alpha: float, k: int, names: Sequence[str]
) -> list[int]:
    """The largest gain at every rank, ties by the larger id."""
    left = sorted(np.flatnonzero(gain > 0).tolist(), key=names.__getitem__, reverse=True)
    ideal: list[int] = []
    repeated: npt.NDArray[Any] = np.zeros(len(gain))
    while left and len(ideal) < k:
        gains = gain[left] * (1.0 - alpha) ** repeated[left]
        ideal.append(left.pop(int(gains.argmax())))
        repeated = repeated + similarity[ideal[-1]]
    return ideal
