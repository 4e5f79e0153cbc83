"""Measure on small, known corpora what docs/explanation/ says of the objective, of σ and of λ.

    python benchmarks/mathematics.py        # writes benchmarks/results/mathematics.json; some 20 seconds

``coverage``: the demo's first question, pick by pick: what each method covers, and what no set of that size
can exceed. ``knobs``: five picks for each of the demo's questions along λ of MMR and along σ of Dartboard:
how many different facts they tell, and how close to the question they are. ``copies``: how many of ten picks
repeat another one to the bit, by the published algorithm and by ours, on pools in which everything stands
twice.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its neighbours

from benchmarks.selection import make_pool, published  # noqa: E402
from dartboard.datasets import demo  # noqa: E402
from dartboard.embeddings import default_model  # noqa: E402
from dartboard.selection import MMR, Dartboard, Limits, Method, Pool, TopK, from_embeddings  # noqa: E402
from dartboard.types import FloatArray  # noqa: E402

TRIAGE, DEEPEST, K = 100, 12, 5
SYSTEMS: dict[str, Method] = {
    "cosine": TopK(),
    "mmr-0.5": MMR(relevance_weight=0.5),
    "mmr-0.7": MMR(relevance_weight=0.7),
    "dartboard": Dartboard(),
}
FACTORS = [round(float(factor), 4) for factor in np.geomspace(1 / 16, 16, 17)]
WEIGHTS = [round(weight, 2) for weight in np.linspace(0.0, 1.0, 21).tolist()]
SIGMAS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]


class Question:
    """A question of the demo, its nearest passages, and what each of them is a wording of."""

    def __init__(self, text: str, query: FloatArray, vectors: FloatArray) -> None:
        near = np.argsort(-(vectors @ query), kind="stable")[:TRIAGE]
        self.text, self._query, self._vectors = text, query, vectors[near]
        self._facts = [demo.passages()[place]["base"] for place in near]
        self._themes = [demo.passages()[place]["theme"] for place in near]

    def pool(self, factor: float = 1.0) -> Pool:
        """The candidates at ``factor`` times the automatic σ."""
        automatic = from_embeddings(self._query, self._vectors)
        if factor == 1.0:
            return automatic
        return from_embeddings(self._query, self._vectors, sigma=factor * automatic.sigma.value)

    def picked(self, method: Method, factor: float = 1.0) -> dict[str, float]:
        """What five picks tell, and how close to the question they are."""
        found = method.select(self.pool(factor), Limits(k=K)).indices.tolist()
        close = self._vectors[found] @ self._query
        return {
            "facts": len({self._facts[place] for place in found}),
            "themes": len({self._themes[place] for place in found}),
            "similarity": float(close.mean()),
        }


def questions() -> Iterator[Question]:
    """The demo's questions with their candidates."""
    model = default_model()
    vectors = model.encode(demo.texts())
    for one in demo.questions():
        yield Question(one.text, model.encode([one.text])[0], vectors)


def coverage(question: Question) -> dict[str, Any]:
    """Coverage after 1, 2, … picks, gains of the picks, and the ceiling at every size."""
    pool = question.pool()
    found = {
        name: method.select(pool, Limits(k=DEEPEST)).coverage.tolist() for name, method in SYSTEMS.items()
    }
    ceilings = []
    for k in range(1, DEEPEST + 1):
        chosen = Dartboard().select(pool, Limits(k=k))
        ceilings.append(min(1.0, float(chosen.coverage[-1]) / chosen.bound))
    return {
        "question": question.text,
        "sigma": pool.sigma.value,
        "coverage": found,
        "ceiling": ceilings,
        "gains": Dartboard().select(pool, Limits(k=DEEPEST)).gains.tolist(),
    }


def knobs(asked: list[Question]) -> dict[str, Any]:
    """Means over the questions along λ and along σ."""
    return {
        "weights": [
            _mean([one.picked(MMR(relevance_weight=w)) for one in asked]) | {"at": w} for w in WEIGHTS
        ],
        "factors": [_mean([one.picked(Dartboard(), f) for one in asked]) | {"at": f} for f in FACTORS],
        "cosine": _mean([one.picked(TopK()) for one in asked]),
    }


def copies(pools: int = 20, k: int = 10) -> list[dict[str, Any]]:
    """Of k picks, how many are equal to an earlier one; everything in the pools stands twice."""
    rows = []
    for sigma in SIGMAS:
        theirs = ours = 0
        for seed in range(pools):
            query, once = make_pool(100, seed)
            twice = np.repeat(once, 2, axis=0)
            chosen = Dartboard().select(from_embeddings(query, twice, sigma=sigma), Limits(k=k)).indices
            theirs += k - len({pick // 2 for pick in published(query, twice, sigma, k)})
            ours += k - len(set((chosen // 2).tolist()))
        rows.append({"sigma": sigma, "published": theirs / pools, "dartboard": ours / pools, "k": k})
    return rows


def _mean(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "mathematics.json")
    out = parser.parse_args().out
    asked = list(questions())
    found = {"coverage": coverage(asked[0]), "knobs": knobs(asked), "copies": copies()}
    out.write_text(json.dumps(found, indent=1) + "\n")
    for row in found["copies"]:
        print(row)


if __name__ == "__main__":
    main()
