"""How often the rule for "nothing relevant found" is right; write JSON.

    python benchmarks/relevance.py [--model NAME] [--out FILE]

Every set's queries are asked of every set's corpus: of their own, where there is something to find, and of
the others, where mostly there is not. A corpus is all its judged passages, and others up to 1,500. The
threshold's place between the model's two levels (``dartboard.relevance.SHARE``) is chosen on every other
query: the highest in steps of .05 that flags at most two per cent of the queries on their own corpus, for
each corpus. All figures are those of the other half.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT.parent))  # run as a script, this file finds its neighbours

from benchmarks.measuring import data_folder  # noqa: E402
from dartboard.datasets import load_text  # noqa: E402
from dartboard.datasets.text_dataset import embedded_text  # noqa: E402
from dartboard.embeddings import CachedModel  # noqa: E402
from dartboard.embeddings.by_name import model_by_name  # noqa: E402
from dartboard.relevance import SHARE, measure_levels  # noqa: E402
from dartboard.types import FloatArray  # noqa: E402
from dartboard.utils import unit_rows  # noqa: E402

SETS = ("jest_versions", "scifact", "hotpotqa_dev200", "rgb_en_fact", "perspectrum_train")
PASSAGES = 1500
ALLOWED = 0.02
SHARES = [round(share, 2) for share in np.arange(0.3, 0.81, 0.05).tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", default="default", help="an embedding model by name")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "relevance.json")
    options = parser.parse_args()
    model = CachedModel(model_by_name(options.model))
    levels = measure_levels(model)
    if levels is None:
        sys.exit(f"{model.name} does not tell an answer from other text: the rule says nothing of it")
    best = best_cosines(model)
    place = {
        pair: (found - levels.unrelated) / (levels.related - levels.unrelated) for pair, found in best.items()
    }
    found = {
        "model": model.name,
        "levels": levels._asdict(),
        "chosen_share": chosen(place),
        "share": SHARE,
        "flagged": {
            corpus: {asked: flagged(place[corpus, asked][1::2], SHARE) for asked in SETS} for corpus in SETS
        },
        "median": {
            corpus: {asked: float(np.median(best[corpus, asked])) for asked in SETS} for corpus in SETS
        },
        "by_share": {str(share): summary(place, share) for share in SHARES},
    }
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def best_cosines(model: CachedModel) -> dict[tuple[str, str], FloatArray]:
    """The cosine of the best passage for every query, by corpus and set of queries."""
    encoded = {name: encode(name, model) for name in SETS}
    return {
        (corpus, asked): (queries @ passages.T).max(axis=1)
        for corpus, (passages, _) in encoded.items()
        for asked, (_, queries) in encoded.items()
    }


def encode(name: str, model: CachedModel) -> tuple[FloatArray, FloatArray]:
    """Unit vectors of a set's passages (all that are judged, then others) and of its queries."""
    text = load_text(name, data_folder(name), fetch=False)
    judged = {id for grades in text.qrels.values() for id in grades}
    passages = sorted(text.passages, key=lambda passage: passage.id not in judged)
    kept = passages[: max(PASSAGES, len(judged))]
    vectors = model.encode_documents([embedded_text(one.text, one.title) for one in kept])
    return unit_rows(vectors), unit_rows(model.encode_queries(list(text.queries.values())))


def flagged(places: FloatArray, share: float) -> float:
    """The share of queries of which the rule says that nothing relevant was found."""
    return float(np.mean(places < share))


def chosen(place: dict[tuple[str, str], FloatArray]) -> float:
    """The highest share that flags few queries on their own corpora, by the half that chooses."""
    fit = [s for s in SHARES if all(flagged(place[name, name][::2], s) <= ALLOWED for name in SETS)]
    return max(fit, default=SHARES[0])


def summary(place: dict[tuple[str, str], FloatArray], share: float) -> dict[str, float]:
    """The half that reports: the mean over corpora and the worst, on the queries' own and on others'."""
    own = [flagged(place[name, name][1::2], share) for name in SETS]
    others = [flagged(place[pair][1::2], share) for pair in place if pair[0] != pair[1]]
    return {
        "own_mean": float(np.mean(own)),
        "own_worst": max(own),
        "others_mean": float(np.mean(others)),
        "others_worst": min(others),
    }


def table(found: dict[str, Any]) -> str:
    """Markdown: one row a corpus, one column a set of queries, per cent that are flagged."""
    lines = ["| corpus | " + " | ".join(SETS) + " |", "|---" * (len(SETS) + 1) + "|"]
    for corpus, asked in found["flagged"].items():
        cells = [f"**{asked[name]:.0%}**" if name == corpus else f"{asked[name]:.0%}" for name in SETS]
        lines.append(f"| {corpus} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
