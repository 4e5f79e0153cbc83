"""Could a difference on held-out queries be chance?

Query by query, signs are turned at random: p is how often the mean difference is then as large as the one
that was found, on either side. The sides matter: a number that is no better than the rule is adopted with a
probability of half the level, and the better of two such numbers with the level at most.
"""

from itertools import product

import numpy as np

from dartboard.types import FloatArray

Recalls = dict[str, dict[str, FloatArray]]
"""``{kind: {corpus: (Q,)}}``: the recall of each held-out query."""

LEVEL = 0.05
"""What is fitted has to beat the rule with a smaller p than this."""

DRAWS = 10_000
TIE = 1e-9
"""Differences up to this are rounding."""

_EXACT_UP_TO = 12
_BLOCK = 500


def gain_over(fitted: dict[str, FloatArray], rule: dict[str, FloatArray]) -> FloatArray:
    """By how much the recall of each query is higher than under the rule, on average over the corpora."""
    gain: FloatArray = np.mean([fitted[corpus] - rule[corpus] for corpus in rule], axis=0)
    return gain


def means_of(recalls: Recalls) -> dict[str, dict[str, float]]:
    """The mean recall for each kind on each corpus."""
    return {
        name: {corpus: round(float(found.mean()), 6) for corpus, found in by_corpus.items()}
        for name, by_corpus in recalls.items()
    }


def differing(differences: FloatArray) -> FloatArray:
    """The differences of the queries on which there is one."""
    return differences[np.abs(differences) > TIE]


def chance(differences: FloatArray, *, seed: int = 0) -> float:
    """Two-sided p of no difference, from paired differences ``(Q,)``; exact where few queries differ."""
    moved = differing(differences)
    least = abs(float(moved.sum())) - TIE
    if len(moved) <= _EXACT_UP_TO:
        signs = np.array(list(product((-1.0, 1.0), repeat=len(moved))))
        return float((np.abs(signs @ moved) >= least).mean())
    rng = np.random.default_rng(seed)
    beyond = 0
    for _ in range(DRAWS // _BLOCK):
        turned = 2.0 * rng.integers(0, 2, (_BLOCK, len(moved))) - 1.0
        beyond += int((np.abs(turned @ moved) >= least).sum())
    return (beyond + 1) / (DRAWS + 1)


def said(p: float) -> str:
    """p in words for a reader: three digits, and no zero."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
