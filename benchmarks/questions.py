"""Several questions at once, beside rank fusion, round robin and the largest similarity; write JSON.

    python benchmarks/questions.py [--out FILE]

MuSiQue's questions come with their sub-questions. A later one refers to the answer of an earlier one as
``#1``. ``filled`` puts that answer in its place, which is the most that a decomposition can reach;
``unfilled`` leaves it out, which is what is known before anything is answered. HotpotQA's questions have no
sub-questions: ``split`` cuts them at their clauses (:func:`clauses`). All systems see the same questions, the
whole one first, and the same hundred candidates of each, over the whole corpus of the set. Measured is the
recall of the required passages.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT.parent))  # run as a script, this file finds its neighbours

from benchmarks.measuring import data_folder  # noqa: E402
from dartboard.datasets import load_text, progress_bar  # noqa: E402
from dartboard.datasets.text_dataset import embedded_text  # noqa: E402
from dartboard.embeddings import CachedModel, default_model  # noqa: E402
from dartboard.engine import Engine  # noqa: E402
from dartboard.statistics import bootstrap, compare  # noqa: E402
from dartboard.stores import Record  # noqa: E402
from dartboard.stores.memory import MemoryStore  # noqa: E402

DEPTHS = (3, 5, 10)
TRIAGE = 100
OURS = "dartboard, several questions"
RETRIEVERS = ("dense", "hybrid")
_REFERENCE = re.compile(r"#(\d+)")
_CLAUSE = re.compile(r",|;|\b(?:and|or|who|whom|whose|which|that|where|when|while|but)\b", re.IGNORECASE)
SHORTEST_CLAUSE = 4  # words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "questions.json")
    options = parser.parse_args()
    model = CachedModel(default_model())
    asked = {
        "musique, filled": ("musique_train100", lambda row: sub_questions(row, filled=True)),
        "musique, unfilled": ("musique_train100", lambda row: sub_questions(row, filled=False)),
        "hotpotqa, split": ("hotpotqa_dev200", lambda row: clauses(row["text"])),
    }
    found: dict[str, Any] = {"model": model.name, "triage_k": TRIAGE, "sets": {}}
    for retriever in RETRIEVERS:
        for name, (folder, parts_of) in asked.items():
            found["sets"][f"{name}; {retriever}"] = measured(folder, parts_of, model, retriever)
            print(f"{name}; {retriever}", file=sys.stderr)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def sub_questions(row: Mapping[str, Any], *, filled: bool) -> list[str]:
    """The sub-questions of a MuSiQue row, with earlier answers in their places or without."""
    steps = row["metadata"]["decomposition"]

    def answer(reference: re.Match[str]) -> str:
        return steps[int(reference[1]) - 1]["answer"] if filled else ""

    texts = [_REFERENCE.sub(answer, step["question"]).replace(">>", " ") for step in steps]
    return [text for text in (" ".join(text.split()) for text in texts) if text]


def clauses(question: str) -> list[str]:
    """A question cut at commas and at words that begin a clause; pieces of one to three words are dropped."""
    pieces = [piece.strip(" ?.") for piece in _CLAUSE.split(question)]
    kept = [piece for piece in pieces if len(piece.split()) >= SHORTEST_CLAUSE]
    return kept if len(kept) > 1 else []


def measured(
    folder: str, parts_of: Callable[[Mapping[str, Any]], list[str]], model: CachedModel, retriever: str
) -> dict[str, Any]:
    """Recall of each system at each depth, with intervals, and ours against each."""
    place = data_folder(folder) / folder
    text = load_text(folder, place.parent, fetch=False)
    rows = [json.loads(line) for line in (place / "queries.jsonl").read_text().splitlines()]
    engine = Engine(MemoryStore(), model=model, retriever=retriever)
    passages = list(text.passages)
    with progress_bar() as listen:
        texts = [embedded_text(passage.text, passage.title) for passage in passages]
        listen("Embedding", 0, len(texts))
        vectors = model.encode_documents(texts)
    records = [Record(p.id, t, v) for p, t, v in zip(passages, texts, vectors, strict=True)]
    engine.create().upsert(engine.retriever.index(records))
    recall: dict[str, list[list[float]]] = {}
    for row in rows:
        parts = parts_of(row)
        wanted = set(text.kernels[row["_id"]])
        for name, ids in ranked(engine, row["text"], parts).items():
            recall.setdefault(name, []).append([len(wanted & set(ids[:k])) / len(wanted) for k in DEPTHS])
    columns = {name: np.array(values) for name, values in recall.items()}
    systems = {}
    for name, values in columns.items():
        low, high = bootstrap(values)
        against = compare(columns[OURS], values)
        systems[name] = {
            f"@{k}": {
                "mean": float(values[:, at].mean()),
                "low": float(low[at]),
                "high": float(high[at]),
                "ours_more": against[at].difference,
                "ours_more_low": against[at].low,
                "ours_more_high": against[at].high,
            }
            for at, k in enumerate(DEPTHS)
        }
    split = sum(1 for row in rows if parts_of(row))
    return {"queries": len(rows), "with_parts": split, "passages": len(passages), "systems": systems}


def ranked(engine: Engine, query: str, parts: Sequence[str]) -> dict[str, list[str]]:
    """The ids that each system ranks first."""
    most = max(DEPTHS)
    lists = [engine.candidates(one, TRIAGE) for one in (query, *parts)]
    whole = lists[0].ids

    def searched(**changes: Any) -> list[str]:
        return [chunk.id for chunk in engine.search(query, k=most, triage_k=TRIAGE, **changes).chunks]

    by_similarity: dict[str, float] = {}
    for found in lists:
        unit = found.vectors / np.linalg.norm(found.vectors, axis=1, keepdims=True)
        cosines = unit @ (found.query_vector / np.linalg.norm(found.query_vector))
        for id, cosine in zip(found.ids, cosines.tolist(), strict=True):
            by_similarity[id] = max(cosine, by_similarity.get(id, -1.0))
    return {
        "nearest neighbours, whole question": whole[:most],
        "dartboard, whole question": searched(),
        "rank fusion": fused(lists)[:most],
        "round robin": round_robin([found.ids for found in lists], most),
        "largest similarity": sorted(by_similarity, key=lambda id: (-by_similarity[id], id))[:most],
        OURS: searched(also=parts),
    }


def fused(lists: Sequence[Any]) -> list[str]:
    """Reciprocal rank fusion with the usual constant, 60."""
    earned: dict[str, float] = {}
    for found in lists:
        for rank, id in enumerate(found.ids, start=1):
            earned[id] = earned.get(id, 0.0) + 1.0 / (60 + rank)
    return sorted(earned, key=lambda id: (-earned[id], id))


def round_robin(lists: Sequence[Sequence[str]], count: int) -> list[str]:
    """The first of each list, then the second of each; what is there already is skipped."""
    taken: dict[str, None] = {}
    for turn in zip(*lists, strict=False):
        taken |= dict.fromkeys(turn)
    return list(taken)[:count]


def table(found: dict[str, Any]) -> str:
    """Markdown: recall at each depth, set by set; in brackets what ours has more, with its interval at 5."""
    lines = []
    for name, cell in found["sets"].items():
        if not name.startswith("musique"):
            continue
        heads = " | ".join(f"@{k}" for k in DEPTHS)
        lines += [
            "",
            f"**{name}** ({cell['with_parts']} of {cell['queries']} questions have parts)",
            "",
            f"| | {heads} | ours more @5 |",
            "|---" * (len(DEPTHS) + 2) + "|",
        ]
        for system, by_depth in cell["systems"].items():
            cells = " | ".join(f"{by_depth[f'@{k}']['mean']:.3f}" for k in DEPTHS)
            five = by_depth["@5"]
            more = f"{five['ours_more']:+.3f} ({five['ours_more_low']:+.3f} to {five['ours_more_high']:+.3f})"
            lines.append(f"| {system} | {cells} | {'' if system == OURS else more} |")
    return "\n".join(lines[1:])


def headline(found: dict[str, Any]) -> str:
    """Markdown: recall of the required passages at 5, for MuSiQue."""
    names = ["musique, filled; hybrid", "musique, unfilled; hybrid"]
    lines = ["| recall at 5, MuSiQue | with earlier answers | without |", "|---|---|---|"]
    for system in found["sets"][names[0]]["systems"]:
        cells = " | ".join(f"{found['sets'][name]['systems'][system]['@5']['mean']:.2f}" for name in names)
        lines.append(f"| {system} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
