"""Compare label-free rules for σ on real data, clean and redundant; docs/sigma.md says what came of it.

    python benchmarks/sigma.py [--sets NAME …] [--edits] [--seed N] [--triage N] [--crowds] [--out FILE]

Data sets as for quality.py, in the folder that DARTBOARD_DATA names. For every query the nearest 100 are
found once; a rule then turns their distances into picks. What is written is the recall of the required
passages among the first 5 and 10 picks, any copy counting. A run goes on where the last one stopped.
``--edits`` adds edited texts: five of every passage, one to five of every other passage, and five of nothing
but the passage nearest to each question, or the nearest three. The default model has to embed them: an hour
on two cores. Copies by noise have the words of their originals, which would give them away: on these corpora
no rule is shown any words. ``--seed`` draws other noise and other edits, ``--triage`` finds another number of
candidates than 100; their results need a file of their own (``--out``). ``--crowds`` says how crowded it is
(D and C: 10 %, median, 90 %) and compares no rules. At the end the table of docs/sigma.md is printed.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its neighbours

from benchmarks import sigma_tables  # noqa: E402
from benchmarks.sigma_tables import HALF, NEAREST, PARTLY  # noqa: E402
from dartboard.datasets import load_dataset, progress_bar, with_redundancy  # noqa: E402
from dartboard.embeddings import CachedModel, default_model  # noqa: E402
from dartboard.evaluation import Judgements  # noqa: E402
from dartboard.selection import bandwidth, neighbourhood  # noqa: E402
from dartboard.selection.kernels import distances, unit_rows  # noqa: E402
from dartboard.types import Dataset, FloatArray, IntArray  # noqa: E402

SETS = ("hotpotqa_dev200", "musique_train100", "rgb_en_int", "rgb_en_fact", "scifact")
EDITS = ["truncate", "shuffle", "boilerplate", "revise"]
K = 10


@dataclass(frozen=True, slots=True)
class Candidates:
    """A query's candidates, the nearest first; ``base`` says what each is a copy of."""

    to_query: FloatArray
    pairwise: FloatArray
    base: list[str]
    required: frozenset[str]
    texts: list[str] | None = None

    @property
    def median(self) -> float:
        """The median distance between two of them."""
        return float(np.median(self.pairwise[np.triu_indices(len(self.pairwise), 1)]))

    @property
    def nearest(self) -> FloatArray:
        """How far each is from its nearest neighbour, ``(n,)``."""
        neighbours: FloatArray = (self.pairwise + np.diag(np.full(len(self.pairwise), np.inf))).min(axis=1)
        return neighbours

    @property
    def alone(self) -> float:
        """The share of the probability that has no neighbour near by."""
        return float(neighbourhood.standing_alone(self.nearest, self.to_query, self.median, "scaled_cosine"))

    def judged(self, *, worded: bool = True) -> bandwidth.Judged:
        """σ and near-copies by the rule."""
        texts = self.texts if worded else None
        return bandwidth.from_candidates(
            self.pairwise,
            "scaled_cosine",
            to_query=self.to_query,
            apart=self.pairwise,
            texts=None if texts is None else lambda rows: [texts[row] for row in rows],
        )

    @property
    def crowding(self) -> neighbourhood.Crowd:
        """How crowded what the query may mean is."""
        return neighbourhood.crowd_among(self.pairwise, self.to_query, self.median, "scaled_cosine")

    @property
    def crowd(self) -> float:
        """How near 70 % of the candidates have a neighbour."""
        return float(np.quantile(self.nearest, 0.7, method="lower"))


Rule = Callable[[Candidates], list[int]]


def dartboard(
    pool: Candidates, of_query: float, of_passages: float, power: int = 2, shared: bool = False
) -> list[int]:
    """Greedy picks; ``shared`` divides a target's weight by how many candidates stand around it."""
    weights = np.exp(-0.5 * ((pool.to_query / of_query) ** 2 - (pool.to_query.min() / of_query) ** 2))
    kernel = np.exp(-0.5 * (pool.pairwise / of_passages) ** power)
    if shared:
        weights = weights / kernel.sum(axis=1)
    picks, covered = [0], kernel[0].copy()
    while len(picks) < K:
        gains = np.maximum(kernel - covered, 0.0) @ weights
        gains[picks] = -1.0
        picks.append(int(gains.argmax()))
        np.maximum(covered, kernel[picks[-1]], out=covered)
    return picks


def apart(pool: Candidates, threshold: float) -> list[int]:
    """The nearest to the query, passing over what is within ``threshold`` of an earlier pick."""
    picks: list[int] = []
    for i in range(len(pool.to_query)):
        if (pool.pairwise[i, picks] > threshold).all():
            picks.append(i)
    rest = [i for i in range(len(pool.to_query)) if i not in picks]
    return (picks + rest)[:K]


def one_a_base(pool: Candidates) -> list[int]:
    """What nobody can do without knowing who is a copy of whom."""
    firsts = {base: i for i, base in reversed(list(enumerate(pool.base)))}
    picks = sorted(firsts.values())
    return (picks + [i for i in range(len(pool.base)) if i not in picks])[:K]


def filtered(cosine: float) -> Rule:
    """The near-duplicate filter at a cosine."""
    return lambda pool: apart(pool, (1 - cosine) / 2)


def fixed(divisor: float, **how: Any) -> Rule:
    """σ = median / divisor."""
    return lambda pool: dartboard(pool, pool.median / divisor, pool.median / divisor, **how)


def detecting(query: float, passages: float, *, even: bool = False) -> Rule:
    """median / 4 where what the query may mean repeats itself; elsewhere over ``query`` and ``passages`` too.

    ``even`` asks all candidates alike whether they repeat themselves, wherever the query is.
    """

    def pick(pool: Candidates) -> list[int]:
        low, high = (0.25, 0.35) if even else (0.1, 0.4)
        at = pool.crowd / pool.median if even else pool.alone
        t = min(max((at - low) / (high - low), 0.0), 1.0)
        return dartboard(pool, pool.median / 4 / query**t, pool.median / 4 / passages**t)

    return pick


def ruled(*, worded: bool = True, **otherwise: bandwidth.Scale) -> Rule:
    """What :mod:`dartboard.selection.bandwidth` does, with some of its constants ``otherwise``.

    Without ``worded``, copies are known by vectors alone.
    """

    def pick(pool: Candidates) -> list[int]:
        with patch.multiple(bandwidth, **otherwise) if otherwise else nullcontext():
            sigma, groups = pool.judged(worded=worded)
        return among_leaders(pool, groups, lambda one: dartboard(one, sigma.value, sigma.value))

    return pick


def by_sigma_alone(pool: Candidates) -> list[int]:
    """The same without setting anything aside."""
    sigma = bandwidth.spread(pool.median, pool.crowding)
    return dartboard(pool, sigma, sigma)


def among_leaders(pool: Candidates, groups: IntArray | None, pick: Rule) -> list[int]:
    """Picks among those that stand for groups, and then the rest."""
    leaders = neighbourhood.leading(np.arange(len(pool.base)) if groups is None else groups, pool.to_query)
    if len(leaders) <= K:
        return [*leaders.tolist(), *(i for i in range(len(pool.base)) if i not in leaders)][:K]
    one = replace(pool, to_query=pool.to_query[leaders], pairwise=pool.pairwise[np.ix_(leaders, leaders)])
    return [int(leader) for leader in leaders[pick(one)]]


def nearest_of_groups(pool: Candidates) -> list[int]:
    """The nearest to the query, one of each group of near-copies."""
    return among_leaders(pool, pool.judged().groups, lambda one: list(range(K)))


def by_gap(divisor: float, times: float, **how: Any) -> Rule:
    """Query's side median / divisor, passages' side so many times the distance of near-copies."""
    return lambda pool: dartboard(
        pool, pool.median / divisor, min(times * pool.crowd, pool.median / 3), **how
    )


RULES: dict[str, Rule] = {
    "nearest neighbours": lambda pool: list(range(K)),
    "copies known (not a rule)": one_a_base,
    **{f"near-duplicate filter {cosine:.2f}": filtered(cosine) for cosine in (0.8, 0.85, 0.9, 0.95)},
    "near-duplicate filter at 2.5 e": lambda pool: apart(pool, min(2.5 * pool.crowd, 0.4 * pool.median)),
    **{f"median / {a:g}": fixed(a) for a in (3, 3.5, 4, 5, 6, 8, 12, 20)},
    "median / 4, shared weights": fixed(4, shared=True),
    "sides apart, median / 3 and 1.5 e": by_gap(3, 1.5),
    "the same, shared weights": by_gap(3, 1.5, shared=True),
    "median / 4 and 2 e, fourth power, shared": by_gap(4, 2, power=4, shared=True),
    "detecting, to median / 8": detecting(2, 2),
    "detecting, to median / 20": detecting(5, 5),
    "detecting, to median / 8 and / 64": detecting(2, 16),
    "detecting over all candidates, to median / 8": detecting(2, 2, even=True),
    "detecting over all candidates, to median / 20": detecting(5, 5, even=True),
    "nearest neighbours, one of each group": nearest_of_groups,
    "the rule, nothing set aside": by_sigma_alone,
    "one of each group, then that (the rule)": ruled(),
    "the rule, copies known by vectors alone": ruled(worded=False),
    "the rule, to median / 10 beside copies, too": ruled(
        BESIDE_COPIES=bandwidth.BESIDE_COPIES._replace(sharper=2.5)
    ),
    "the rule, to median / 10 by words, too": ruled(BY_WORDS=bandwidth.BY_DISTANCE),
    "the rule, to median / 20": ruled(BY_DISTANCE=bandwidth.BY_WORDS),
}


def pools(
    dataset: Dataset, asked: FloatArray, *, worded: bool, copied: int | None = None, triage: int = 100
) -> Iterator[Candidates]:
    """The candidates of every judged query, with their words or without.

    Where ``copied`` says of how many, only the passages nearest to the query have copies.
    """
    judged = Judgements.of(dataset)
    bases = np.array([str(chunk.metadata.get("base_id", chunk.id)) for chunk in dataset.chunks])
    original = np.array([not chunk.metadata.get("copy", 0) for chunk in dataset.chunks])
    corpus = unit_rows(np.stack([chunk.embedding for chunk in dataset.chunks]).astype(np.float64))
    vector_of = dict(zip(dataset.query_ids, unit_rows(asked.astype(np.float64)), strict=True))
    for query_id, kernel in zip(judged.query_ids, judged.kernel_bases, strict=True):
        query = vector_of[query_id]
        cosine = corpus @ query
        if copied is not None:
            nearest = np.argsort(-cosine[original], kind="stable")[:copied]
            cosine[~original & ~np.isin(bases, bases[original][nearest])] = -np.inf
        rows = np.lexsort((np.arange(len(cosine)), -cosine))[:triage]
        near = corpus[rows]
        yield Candidates(
            np.maximum((1 - near @ query) / 2, 0),
            distances(near, near, "scaled_cosine"),
            judged.bases([dataset.chunks[row].id for row in rows]),
            kernel,
            [dataset.chunks[row].text for row in rows] if worded else None,
        )


def partly_redundant(dataset: Dataset) -> Dataset:
    """Twenty near-copies at cosine .95 of every tenth passage, none of the others."""
    chosen = {chunk.id for chunk in dataset.chunks[::10]}
    some = replace(dataset, chunks=[chunk for chunk in dataset.chunks if chunk.id in chosen], ground_truth={})
    copies = [c for c in with_redundancy(some, copies=20, cosine=0.95).chunks if c.id not in chosen]
    return replace(dataset, chunks=[*dataset.chunks, *copies])


def half_edited(clean: Dataset, edited: Dataset) -> Dataset:
    """One to five of the edits of every other passage, drawn at random."""
    rng = np.random.default_rng(5)
    count = np.where(rng.random(len(clean.chunks)) < 0.5, 0, rng.integers(1, 6, len(clean.chunks)))
    most = {chunk.id: int(copies) for chunk, copies in zip(clean.chunks, count, strict=True)}
    kept = [c for c in edited.chunks if c.metadata.get("copy", 0) <= most[str(c.metadata["base_id"])]]
    return replace(clean, chunks=kept)


def recalls(found: list[Candidates], rule: Rule) -> dict[str, float]:
    """Mean recall at 5 and 10."""
    total = {"@5": 0.0, "@10": 0.0}
    for pool in found:
        picked = [pool.base[i] for i in rule(pool)]
        for depth in (5, 10):
            total[f"@{depth}"] += len(pool.required.intersection(picked[:depth])) / len(pool.required)
    return {depth: round(value / len(found), 6) for depth, value in total.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--edits", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--triage", type=int, default=100)
    parser.add_argument("--crowds", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "sigma.json")
    options = parser.parse_args()
    data = Path(os.environ.get("DARTBOARD_DATA", ROOT.parent / "shared" / "data"))
    if (options.seed or options.triage != 100) and options.out == parser.get_default("out"):
        parser.error("another seed or triage makes other pools: name a file for their results with --out")
    if not data.is_dir():
        sys.exit(f"no data in {data}: set DARTBOARD_DATA to the folder that holds {', '.join(options.sets)}")
    model = CachedModel(default_model())
    done = json.loads(options.out.read_text()) if options.out.exists() and not options.crowds else {}
    made: dict[str, dict[str, Any]] = {
        "clean": {},
        "copies at .97": {"cosine": 0.97},
        "copies at .90": {"cosine": 0.90},
        PARTLY: {},
        "copies at .97 of the nearest": {"cosine": 0.97},
    }
    if options.edits:
        edited = ("text edits", HALF, "edits of the nearest", "edits of the nearest three")
        made |= {condition: {"edits": EDITS, "model": model} for condition in edited}
    for name in options.sets:
        missing = {
            condition: [rule for rule in RULES if rule not in done.get(name, {}).get(condition, {})]
            for condition in made
        }
        if not any(missing.values()):
            continue
        with progress_bar() as listen:
            clean = load_dataset(name, data, model, progress=listen, fetch=False)
        asked = model.encode_queries(clean.queries)
        for condition, rules in missing.items():
            if not rules:
                continue
            how = made[condition]
            dataset = with_redundancy(clean, copies=5, seed=options.seed, **how) if how else clean
            if condition in (PARTLY, HALF):
                dataset = partly_redundant(clean) if condition == PARTLY else half_edited(clean, dataset)
            worded = condition == "clean" or "edits" in condition
            copied = NEAREST.get(condition)
            found = list(pools(dataset, asked, worded=worded, copied=copied, triage=options.triage))
            if options.crowds:
                told = np.quantile([pool.crowding for pool in found], [0.1, 0.5, 0.9], axis=0).T
                print(
                    name,
                    condition,
                    *(
                        f"{key} {q[0]:.2f} / {q[1]:.2f} / {q[2]:.2f}"
                        for key, q in zip("DC", told, strict=True)
                    ),
                )
                continue
            scores = done.setdefault(name, {}).setdefault(condition, {})
            scores.update({rule: recalls(found, RULES[rule]) for rule in rules})
            options.out.write_text(json.dumps(done, indent=1) + "\n")
            print(name, condition, flush=True)
    if not options.crowds:
        print(sigma_tables.rules(done))


if __name__ == "__main__":
    main()
