"""Find duplicates: quality on the documentation of three releases, time and memory on 100,000 chunks.

    python benchmarks/duplicates.py [--chunks 100000] [--out FILE]

Truth of ``jest_versions``: two sections are duplicates if they are the same section of the same page in two
releases. Pairs within a group are counted. A section that was rewritten is in no group, and pages repeat each
other's paragraphs, so neither figure can be 1. Synthetic chunks have 100 words; a fifth are edited copies.
"""

import argparse
import json
import resource
import sys
import time
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT.parent))  # run as a script, this file finds its neighbours

from benchmarks.measuring import data_folder  # noqa: E402
from dartboard.datasets import load_text  # noqa: E402
from dartboard.datasets.text_dataset import embedded_text  # noqa: E402
from dartboard.duplicates import DuplicateReport  # noqa: E402
from dartboard.duplicates.groups import members  # noqa: E402
from dartboard.embeddings import CachedModel, default_model  # noqa: E402
from dartboard.engine import Engine  # noqa: E402
from dartboard.stores import Record  # noqa: E402
from dartboard.stores.memory import MemoryStore  # noqa: E402
from dartboard.utils import unit_rows  # noqa: E402

SET = "jest_versions"
WORDS, VOCABULARY, COPIES = 100, 30_000, 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "duplicates.json")
    options = parser.parse_args()
    model = CachedModel(default_model())
    # First the size: memory is the most that the process has used.
    found = {"size": size(model, options.chunks), "quality": quality(model)}
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{quality_table(found['quality'])}\n\n{size_table(found['size'])}")


def quality(model: CachedModel) -> dict[str, Any]:
    """Precision and recall of pairs, and what searches show."""
    text = load_text(SET, data_folder(SET), fetch=False)
    lines = (data_folder(SET) / SET / "corpus.jsonl").read_text().splitlines()
    places = {row["_id"]: row["metadata"] for row in map(json.loads, lines)}
    texts = [embedded_text(passage.text, passage.title) for passage in text.passages]
    vectors = model.encode_documents(texts)
    records = [
        Record(p.id, t, v, places[p.id]) for p, t, v in zip(text.passages, texts, vectors, strict=True)
    ]
    engine = Engine(MemoryStore(), model=model)
    engine.create().upsert(engine.retriever.index(records))
    report = engine.duplicates()
    sections = defaultdict(list)
    for at, id in enumerate(report.corpus.ids):
        sections[places[id]["page"], places[id]["section"]].append(at)
    truth = {
        pair
        for same in sections.values()
        for pair in combinations(same, 2)
        if len({places[report.corpus.ids[at]]["version"] for at in pair}) == 2
    }
    return {
        "set": SET,
        "chunks": report.chunks,
        "pairs": len(truth),
        "text": _pairs(report.text_groups, truth),
        "vectors": _pairs(report.vector_groups, truth),
        **_facts(report),
    }


def _pairs(groups: Any, truth: set[tuple[int, int]]) -> dict[str, float]:
    found = {pair for part in members(groups) for pair in combinations(part.tolist(), 2)}
    right = len(found & truth)
    return {"found": len(found), "precision": right / len(found), "recall": right / len(truth)}


def _facts(report: DuplicateReport) -> dict[str, Any]:
    names = ("chunks", "exact", "near", "similar", "similarity", "sigma", "repeats", "answer")
    whole = report.to_json(0)
    return {name: whole[name] for name in names}


def size(model: CachedModel, count: int) -> dict[str, Any]:
    """Seconds of each step and memory, over a collection whose vectors are there."""
    engine = Engine(MemoryStore(), model=model, retriever="dense")
    collection = engine.create()
    rng = np.random.default_rng(0)
    originals = round(count * (1 - COPIES))
    texts, vectors = _synthetic(rng, originals, count - originals, engine.model.embedding_dim)
    records = [
        Record(f"{at:06}", text, vector, {"source": f"{at % 1000}.md"})
        for at, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]
    collection.upsert(engine.retriever.index(records))
    del records, texts, vectors
    engine.search("warm up")
    before = _memory()
    seconds: dict[str, float] = {}
    last = ["", time.perf_counter()]

    def listen(step: str, done: int, total: int) -> None:
        now = time.perf_counter()
        seconds[step] = seconds.get(step, 0.0) + now - last[1]  # type: ignore[operator]
        last[:] = [step, now]

    started, worked = time.perf_counter(), time.process_time()
    last[1] = started
    report = engine.duplicates(listen=listen)
    total, worked = time.perf_counter() - started, time.process_time() - worked
    return {
        "chunks": count,
        "seconds": total,
        "cpu_seconds": worked,
        "steps": seconds,
        "megabytes_before": before,
        "megabytes": _memory(),
        "copies_made": count - originals,
        **_facts(report),
    }


def _synthetic(rng: np.random.Generator, originals: int, copies: int, dim: int) -> tuple[list[str], Any]:
    """Random words by Zipf's law and clustered vectors; copies have three other words and a near vector."""
    share = 1 / np.arange(1, VOCABULARY + 1)
    letters = [[chr(97 + at // 26**place % 26) for place in range(4)] for at in range(VOCABULARY)]
    words = np.array(["".join(one) for one in letters])
    drawn = rng.choice(VOCABULARY, size=(originals, WORDS), p=share / share.sum())
    chosen = rng.integers(originals, size=copies)
    edited = drawn[chosen]
    for row in edited:
        row[rng.integers(WORDS, size=3)] = rng.choice(VOCABULARY, 3)
    scale = (1 / np.sqrt(np.arange(1, dim + 1))).astype(np.float32)
    centres = rng.standard_normal((originals // 10, dim), dtype=np.float32)
    vectors = centres[rng.integers(len(centres), size=originals)]
    vectors = (vectors + rng.standard_normal(vectors.shape, dtype=np.float32)) * scale
    near = vectors[chosen] + 0.1 * rng.standard_normal((copies, dim), dtype=np.float32) * scale
    texts = [" ".join(words[row]) for part in (drawn, edited) for row in part]
    return texts, unit_rows(np.concatenate([vectors, near]))


def _memory() -> float:
    """The most that this process has used, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def quality_table(found: dict[str, Any]) -> str:
    """Markdown: one row per kind of group."""
    lines = ["| groups by | pairs | precision | recall |", "|---|---|---|---|"]
    for name, title in (("text", "text"), ("vectors", "text, then vectors")):
        cell = found[name]
        lines.append(f"| {title} | {cell['found']:,} | {cell['precision']:.3f} | {cell['recall']:.3f} |")
    return "\n".join(lines)


def headline(found: dict[str, Any]) -> str:
    """What the command says of the set."""
    return f"> {found['answer']}"


def size_table(found: dict[str, Any]) -> str:
    """Markdown: time and memory."""
    more = found["megabytes"] - found["megabytes_before"]
    return (
        "| chunks | seconds | CPU seconds | memory beside the index | copies found |\n|---|---|---|---|---|\n"
        f"| {found['chunks']:,} | {found['seconds']:.0f} | {found['cpu_seconds']:.0f} | {more:,.0f} MB | "
        f"{found['exact'] + found['near']:,} of {found['copies_made']:,} |"
    )


if __name__ == "__main__":
    main()
