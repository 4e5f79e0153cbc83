"""Near-duplicates on real data: what is found, what is kept apart, and how long it takes; prints a table.

    python benchmarks/near_duplicates.py

Reads the data sets in the folder that DARTBOARD_DATA names (default ``../shared/data``), and writes
``benchmarks/results/near_duplicates.json`` part by part; names of parts as arguments measure these anew. On
jest_versions, a pair of the same section in two releases counts as an edit if nine tenths of the words are
the same in the same order (difflib). Times are the best of many, on one thread.
"""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from difflib import SequenceMatcher
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))  # run as a script, this file finds its neighbours

from benchmarks.measuring import ROOT, data_folder
from dartboard.blas import one_thread_each
from dartboard.datasets.near_copies import EDITS
from dartboard.embeddings import default_model
from dartboard.near_duplicates import fingerprint, group_fingerprints, near_duplicates

RESULTS = ROOT / "benchmarks" / "results" / "near_duplicates.json"
SETS = ("hotpotqa_dev200", "musique_train100", "scifact", "perspectrum_train", "rgb_en_int", "rgb_en_fact")
LIGHT = 0.9
CLOSE = 0.2
"""Cosine distance below which two candidates are compared."""

Groups = list[list[int]]


def rows(name: str, file: str = "corpus.jsonl") -> list[dict[str, Any]]:
    """The lines of a data set's file."""
    with (data_folder(name) / name / file).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def members(numbers: np.ndarray) -> Groups:
    """The groups of two and more."""
    found = defaultdict(list)
    for place, number in enumerate(numbers.tolist()):
        found[number].append(place)
    return [group for group in found.values() if len(group) > 1]


def releases() -> dict[str, Any]:
    """Pairs of sections of three releases: equal, lightly edited, changed; and grouped or not."""
    corpus = rows("jest_versions")
    texts = [row["text"] for row in corpus]
    numbers = near_duplicates(texts)
    by_section = defaultdict(list)
    for place, row in enumerate(corpus):
        by_section[row["metadata"]["page"], row["metadata"]["section"]].append(place)
    counts: dict[str, list[int]] = {"equal": [0, 0], "edited": [0, 0], "changed": [0, 0]}
    same = {pair for group in by_section.values() for pair in combinations(group, 2)}
    for one, other in sorted(same):
        a, b = texts[one].split(), texts[other].split()
        light = a != b and SequenceMatcher(None, a, b, autojunk=False).ratio() >= LIGHT
        count = counts["equal" if a == b else "edited" if light else "changed"]
        count[0] += int(numbers[one] == numbers[other])
        count[1] += 1
    grouped = [pair for group in members(numbers) for pair in combinations(group, 2)]
    right = sum(pair in same for pair in grouped)
    return {
        **{kind: {"grouped": found, "pairs": pairs} for kind, (found, pairs) in counts.items()},
        "grouped pairs": len(grouped),
        "of the same section": right,
        "precision": round(right / len(grouped), 4),
    }


def counterfactuals() -> dict[str, int]:
    """RGB's passages with a wrong fact against those with the right one, each question's by itself."""
    texts = {row["_id"]: row["text"] for row in rows("rgb_en_fact")}
    pairs = merged = 0
    for pool in rows("rgb_en_fact", "pools.jsonl"):
        ids = [*pool["positive"], *pool["positive_wrong"], *pool["negative"]]
        number = dict(zip(ids, near_duplicates([texts[id] for id in ids]).tolist(), strict=True))
        for right in pool["positive"]:
            for wrong in pool["positive_wrong"]:
                pairs += texts[right] != texts[wrong]
                merged += texts[right] != texts[wrong] and number[right] == number[wrong]
    return {"pairs": pairs, "grouped": merged}


def contained() -> dict[str, int]:
    """RGB's passages that stand word for word in another one of their question, at least half as long."""
    texts = {row["_id"]: row["text"] for row in rows("rgb_en_int")}
    words = {id: " ".join(text.lower().replace("...", " ").split()) for id, text in texts.items()}
    pairs = found = 0
    for pool in rows("rgb_en_int", "pools.jsonl"):
        ids = list(dict.fromkeys([*pool["positive"], *pool["negative"]]))
        number = dict(zip(ids, near_duplicates([texts[id] for id in ids]).tolist(), strict=True))
        for one, other in combinations(ids, 2):
            few, many = sorted((words[one], words[other]), key=len)
            if few in many and 2 * len(few) >= len(many):
                pairs += 1
                found += number[one] == number[other]
    return {"pairs": pairs, "grouped": found}


def corpora() -> dict[str, dict[str, Any]]:
    """How much of each corpus is set aside."""
    made = {}
    for name in SETS:
        texts = [row["text"] for row in rows(name)]
        groups = members(near_duplicates(texts))
        made[name] = {
            "texts": len(texts),
            "groups": len(groups),
            "set aside": sum(len(group) - 1 for group in groups),
        }
    return made


def edited() -> dict[str, dict[str, Any]]:
    """Four edited copies of each of 200 passages: how many are with their original, or with another's."""
    made = {}
    for name in (*(one for one in SETS if one != "perspectrum_train"), "jest_versions"):
        originals = list(dict.fromkeys(row["text"] for row in rows(name)))[::3][:200]
        alone = near_duplicates(originals)
        originals = [text for place, text in enumerate(originals) if alone[place] == place]
        rng = np.random.default_rng(0)
        texts = originals + [edit(text, rng) for edit in EDITS.values() for text in originals]
        base = np.tile(np.arange(len(originals)), 1 + len(EDITS))
        numbers = near_duplicates(texts)
        by_edit = (numbers.reshape(1 + len(EDITS), -1)[1:] == numbers[: len(originals)]).mean(axis=1)
        wrong = sum(len(set(base[group].tolist())) > 1 for group in members(numbers))
        found = {edit: round(float(share), 3) for edit, share in zip(EDITS, by_edit, strict=True)}
        made[name] = {"passages": len(originals), **found, "groups of several": wrong}
    return made


def times() -> dict[str, Any]:
    """Milliseconds for the 100 candidates of some questions on jest_versions."""
    texts = [row["text"] for row in rows("jest_versions")]
    model = default_model()
    different = list(dict.fromkeys(texts))
    vectors = model.encode_documents(different)
    place = {text: at for at, text in enumerate(different)}
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[[place[text] for text in texts]]
    asked = model.encode_queries([row["text"] for row in rows("jest_versions", "queries.jsonl")][::25])
    taken = []
    for query in asked:
        near = np.argsort(-(unit @ query), kind="stable")[:100]
        candidates = [texts[at] for at in near]
        cosines = unit[near] @ unit[near].T
        pairs = np.argwhere(np.triu(cosines > 1 - CLOSE, 1))
        stored = [fingerprint(text) for text in candidates]
        all_pairs = group_fingerprints(stored)
        taken.append(
            (
                len(pairs),
                _best(partial(near_duplicates, candidates, pairs=pairs)),
                _best(partial(group_fingerprints, stored, pairs=pairs)),
                _best(partial(group_fingerprints, stored)),
                np.mean([len(one) for one in stored]),
                int((group_fingerprints(stored, pairs=pairs) != all_pairs).sum()),
            )
        )
    names = ("pairs", "texts", "fingerprints", "fingerprints, all pairs", "bytes a fingerprint", "differ")
    columns = np.array(taken).T
    return {
        name: {"median": round(float(np.median(column)), 3), "most": round(float(column.max()), 3)}
        for name, column in zip(names, columns, strict=True)
    }


def _best(work: Callable[[], object], repeats: int = 50) -> float:
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return 1000 * min(taken)


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "releases": releases,
    "counterfactuals": counterfactuals,
    "contained": contained,
    "corpora": corpora,
    "edited": edited,
    "milliseconds": times,
}


def table(found: dict[str, Any]) -> str:
    """The results for people."""
    jest, timed = found["releases"], found["milliseconds"]
    lines = ["| jest_versions, the same section in two releases | pairs | grouped |", "|---|---|---|"]
    for kind in ("equal", "edited", "changed"):
        lines.append(f"| {kind} | {jest[kind]['pairs']} | {jest[kind]['grouped']} |")
    lines += ["", f"of {jest['grouped pairs']} grouped pairs, {jest['precision']:.1%} are of one section", ""]
    for name in ("counterfactuals", "contained"):
        lines.append(f"{name}: {found[name]['grouped']} of {found[name]['pairs']} pairs grouped")
    lines += ["", "| corpus | texts | groups | set aside |", "|---|---|---|---|"]
    for name, each in found["corpora"].items():
        lines.append(f"| {name} | {each['texts']} | {each['groups']} | {each['set aside']} |")
    kinds = [*EDITS, "groups of several"]
    lines += ["", f"| edited copies of | {' | '.join(kinds)} |", "|---" * (1 + len(kinds)) + "|"]
    for name, each in found["edited"].items():
        lines.append(f"| {name} | {' | '.join(str(each[kind]) for kind in kinds)} |")
    lines += ["", "| 100 candidates of jest_versions | median | most |", "|---|---|---|"]
    lines += [f"| {name} | {each['median']} | {each['most']} |" for name, each in timed.items()]
    return "\n".join(lines)


def main(asked: list[str]) -> None:
    """Measure the parts that are asked for, or else those that are not measured yet."""
    if unknown := [name for name in asked if name not in PARTS]:
        sys.exit(f"no part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in asked or [name for name in PARTS if name not in found]:
        with one_thread_each():
            found[name] = PARTS[name]()
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    if missing := [name for name in PARTS if name not in found]:
        sys.exit(f"not measured yet: {', '.join(missing)}")
    print(table(found))


if __name__ == "__main__":
    main(sys.argv[1:])
