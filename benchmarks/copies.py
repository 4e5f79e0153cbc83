"""Which copy is shown: ``prefer="version"`` on the documentation of several releases; write JSON.

    python benchmarks/copies.py [--out FILE]

Measured over the five picks of each query, with and without ``prefer``: the share of picks that are of the
newest release that has their section, whether the section that was asked for is found, how many different
sections there are, and how many picks name a copy that differs in a number or a name.
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
from dartboard.copies import preference  # noqa: E402
from dartboard.datasets import load_text  # noqa: E402
from dartboard.datasets.text_dataset import embedded_text  # noqa: E402
from dartboard.embeddings import CachedModel, default_model  # noqa: E402
from dartboard.engine import Engine  # noqa: E402
from dartboard.statistics import compare  # noqa: E402
from dartboard.stores import Record  # noqa: E402
from dartboard.stores.memory import MemoryStore  # noqa: E402

SET = "jest_versions"
RETRIEVERS = ("dense", "hybrid")
MEASURES = ("newest", "found", "sections", "differs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "copies.json")
    options = parser.parse_args()
    model = CachedModel(default_model())
    found = {name: measured(model, name) for name in RETRIEVERS}
    options.out.write_text(json.dumps({"set": SET, "retrievers": found}, indent=1) + "\n")
    print(table(found))


def measured(model: CachedModel, retriever: str) -> dict[str, Any]:
    """The means over the queries without and with ``prefer``, and the difference in what is found."""
    text = load_text(SET, data_folder(SET), fetch=False)
    lines = (data_folder(SET) / SET / "corpus.jsonl").read_text().splitlines()
    places = {row["_id"]: row["metadata"] for row in map(json.loads, lines)}  # version, page, section
    passages = list(text.passages)
    texts = [embedded_text(passage.text, passage.title) for passage in passages]
    vectors = model.encode_documents(texts)
    engine = Engine(MemoryStore(), model=model, retriever=retriever)
    records = [Record(p.id, t, v, places[p.id]) for p, t, v in zip(passages, texts, vectors, strict=True)]
    engine.create().upsert(engine.retriever.index(records))
    versions = [place["version"] for place in places.values()]
    rank_of = dict(zip(versions, preference(versions).tolist(), strict=True))
    newest: dict[tuple[str, str], float] = {}
    for place in places.values():
        section = place["page"], place["section"]
        newest[section] = max(newest.get(section, -1.0), rank_of[place["version"]])
    rows: dict[str, list[list[float]]] = {"relevance": [], "version": []}
    for query_id, query in text.queries.items():
        for prefer, into in ((None, rows["relevance"]), ("version", rows["version"])):
            result = engine.search(query, k=5, prefer=prefer)
            picks = [chunk.metadata for chunk in result.chunks]
            sections = [(pick["page"], pick["section"]) for pick in picks]
            into.append(
                [
                    np.mean(
                        [rank_of[p["version"]] == newest[s] for p, s in zip(picks, sections, strict=True)]
                    ),
                    bool({chunk.id for chunk in result.chunks} & set(text.qrels[query_id])),
                    len(set(sections)),
                    sum(
                        any(copy.get("differs") for copy in copies)
                        for copies in result.metadata.get("copies", ())
                    ),
                ]
            )
    columns = {name: np.array(values, dtype=float) for name, values in rows.items()}
    against = compare(columns["version"][:, 1:2], columns["relevance"][:, 1:2])[0]
    return {
        "queries": len(text.queries),
        "means": {
            name: dict(zip(MEASURES, v.mean(axis=0).tolist(), strict=True)) for name, v in columns.items()
        },
        "found_more": {"mean": against.difference, "low": against.low, "high": against.high},
    }


def table(found: dict[str, Any]) -> str:
    """Markdown: one row per retriever and preference."""
    lines = [
        "| retriever | shown copy | picks of the newest release | section found | different sections "
        "| picks with a differing copy |",
        "|---|---|---|---|---|---|",
    ]
    for retriever, cell in found.items():
        for prefer, means in cell["means"].items():
            shown = "most relevant" if prefer == "relevance" else "`prefer=version`"
            differs = "" if prefer == "relevance" else f"{means['differs']:.2f} of 5"
            lines.append(
                f"| {retriever} | {shown} | {means['newest']:.1%} | {means['found']:.1%} | "
                f"{means['sections']:.2f} | {differs} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
