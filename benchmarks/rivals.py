"""Two published selection methods that need no tuning and no language model, as systems of the evaluation.

AdaGReS (arXiv 2512.25052) greedily maximises ``Σ sim(q, c) - β Σ_{i<j} sim(c_i, c_j)``, with the weight in
closed form: ``β = mean sim(q, c) / ((k - 1) / 2 · mean pairwise sim)`` over all candidates. The objective is
the paper's; β was checked against the authors' published code, not against the paper's own text. Their k is
a token budget over the mean length; here it is the number of picks, since all systems get the same number.

VRSD (arXiv 2407.04573) starts with the nearest candidate and adds the one whose vector, summed with those
chosen, has the largest cosine with the query. It is written from the paper's description; the authors' code
was not seen. Vectors are summed at unit length; the paper sums them as they come, and most models' have
unit length.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dartboard.evaluation.questions import Question
from dartboard.types import FloatArray
from dartboard.utils import unit_rows


@dataclass(frozen=True)
class AdaGReS:
    """Relevance minus weighted redundancy; the weight comes from the candidates and the number of picks."""

    name: str = "AdaGReS"
    seeds: Sequence[int] = (0,)

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """The picks; those for another k need not begin with the same ones."""
        picks = adagres(question.vectors, question.similarity, k)
        return [question.candidates[pick].id for pick in picks]


@dataclass(frozen=True)
class VRSD:
    """The sum of the picks points where the query does."""

    name: str = "VRSD"
    seeds: Sequence[int] = (0,)

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """The picks."""
        picks = vrsd(question.vectors, question.vector, k)
        return [question.candidates[pick].id for pick in picks]


def adagres(vectors: FloatArray, similarity: FloatArray, k: int) -> list[int]:
    """Positions of k candidates, by ``(n, d)`` vectors and their ``(n,)`` similarity to the query."""
    unit = unit_rows(np.asarray(vectors, dtype=np.float64))
    between = unit @ unit.T
    count = len(unit)
    apart = (between.sum() - np.trace(between)) / max(count * (count - 1), 1)
    beta = float(similarity.mean() / ((k - 1) / 2 * apart)) if k > 1 and apart != 0 else 0.0
    picks: list[int] = []
    redundancy = np.zeros(count)
    for _ in range(min(k, count)):
        score = similarity - beta * redundancy
        score[picks] = -np.inf
        picks.append(int(np.argmax(score)))
        redundancy += between[picks[-1]]
    return picks


def vrsd(vectors: FloatArray, query: FloatArray, k: int) -> list[int]:
    """Positions of k candidates, by ``(n, d)`` vectors and the query's ``(d,)``."""
    unit = unit_rows(np.asarray(vectors, dtype=np.float64))
    asked = unit_rows(np.asarray(query, dtype=np.float64)[None])[0]
    picks: list[int] = []
    chosen = np.zeros(unit.shape[1])
    for _ in range(min(k, len(unit))):
        sums = unit + chosen
        lengths = np.maximum(np.linalg.norm(sums, axis=1), np.finfo(np.float64).tiny)
        score = sums @ asked / lengths
        score[picks] = -np.inf
        picks.append(int(np.argmax(score)))
        chosen = sums[picks[-1]]
    return picks
