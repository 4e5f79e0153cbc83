"""Does the known answer stand in the context? By budget, beside nearest neighbours and MMR; write JSON.

    python benchmarks/context.py [--sets NAME …] [--out FILE]

The passages of each set are documents. They are cut into chunks of 64 tokens that overlap by 16, so that most
documents are cut, and indexed as usual (hybrid). ``edits`` adds four copies of each document: truncated, with
its sentences in another order, with boilerplate, with synonyms. A system fills a budget of tokens of the
embedding model. The rivals do what people do: chunks in order, each with source and heading, as long as they
fit. Questions whose answer is yes or no are left out.

``sections``: jest's documentation, newest release, a document a section, asked for by its title. Measured is
how much of the section stands in the context, for sections of three chunks and more.

``--spread FOLDER …`` measures the same along β of ``dartboard.selection.pool``, on documentation in the
layout that ``benchmarks/held_out.py`` makes, without the rivals.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT.parent))  # run as a script, this file finds its neighbours

from benchmarks.measuring import data_folder  # noqa: E402
from dartboard import core  # noqa: E402
from dartboard.context.context import _passages  # noqa: E402
from dartboard.context.formats import render  # noqa: E402
from dartboard.datasets import load_text, progress_bar  # noqa: E402
from dartboard.datasets.near_copies import EDITS  # noqa: E402
from dartboard.embeddings import CachedModel, default_model  # noqa: E402
from dartboard.embeddings.texts import count_tokens  # noqa: E402
from dartboard.engine import Engine  # noqa: E402
from dartboard.engine.chunk_writer import ChunkWriter, split  # noqa: E402
from dartboard.evaluation.plots import COLOURS, INK, Drawing, as_svg, standalone  # noqa: E402
from dartboard.ingest import ChunkingConfig, Document  # noqa: E402
from dartboard.ingest.documents import digest  # noqa: E402
from dartboard.mining.judges.words import first_sentence  # noqa: E402
from dartboard.selection import MMR  # noqa: E402
from dartboard.selection.pool import spread_to_neighbours  # noqa: E402
from dartboard.statistics import bootstrap, compare  # noqa: E402
from dartboard.stores.memory import MemoryStore  # noqa: E402
from dartboard.types import Chunk  # noqa: E402

BUDGETS = (200, 400, 800, 1600)
SHARES = (1e-9, 0.1, 0.2, 0.4)
CHUNKS = ChunkingConfig(size=64, overlap=16)
SETS = {
    "HotpotQA": ("hotpotqa_dev200", False),
    "MuSiQue": ("musique_train100", False),
    "HotpotQA, edits": ("hotpotqa_dev200", True),
    "MuSiQue, edits": ("musique_train100", True),
    "RGB integration": ("rgb_int_neutronrag", False),
    "RGB fact": ("rgb_en_fact", False),
}
OURS, UNEXPANDED = "dartboard context", "the same without neighbours"
_PASSAGE = re.compile(r"(?:^|\n\n)\[\d+\] ")
RIVALS: dict[str, Any] = {
    "nearest neighbours": "top_k",
    "MMR, λ = .5": MMR(relevance_weight=0.5),
    "MMR, λ = .7": MMR(relevance_weight=0.7),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sets", nargs="+", choices=[*SETS, "sections"], default=[*SETS, "sections"])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "context.json")
    parser.add_argument("--spread", nargs="+", type=Path, metavar="FOLDER", help="measure along β only")
    options = parser.parse_args()
    model = CachedModel(default_model())
    found: dict[str, Any] = {"model": model.name, "chunks": CHUNKS.to_json(), "sets": {}}
    if options.out.exists():
        found["sets"] = json.loads(options.out.read_text())["sets"]
        found["sections"] = json.loads(options.out.read_text()).get("sections")
        found["spread"] = json.loads(options.out.read_text()).get("spread", {})
    for folder in options.spread or ():
        found.setdefault("spread", {})[folder.name] = sections(folder, model, along_shares)
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    for name in () if options.spread else options.sets:
        if name == "sections":
            found["sections"] = sections(data_folder("jest_versions") / "jest_versions", model, systems)
        else:
            folder, edited = SETS[name]
            found["sets"][name] = measured(folder, indexed(documents(folder, edited), model))
        found["sets"] = {one: found["sets"][one] for one in SETS if one in found["sets"]}
        options.out.write_text(json.dumps(found, indent=1) + "\n")
        print(name, file=sys.stderr)
    print(table(found), sections_table(found["sections"]), sep="\n\n")


def documents(folder: str, edited: bool) -> Iterator[Document]:
    """The passages of a set as documents, and their edited copies."""
    rng = np.random.default_rng(0)
    for passage in load_text(folder, data_folder(folder), fetch=False).passages:
        edits = EDITS.values() if edited else ()
        texts = [passage.text, *(edit(passage.text, rng) for edit in edits)]
        for number, text in enumerate(texts):
            source = f"{passage.id}~{number}" if number else passage.id
            yield Document(
                source=source,
                text=text,
                kind="text",
                title=passage.title,
                document_hash=digest(text.encode()),
            )


def indexed(some: Iterable[Document], model: CachedModel) -> Engine:
    """An index of documents, in memory."""
    engine = Engine(MemoryStore(), model=model)
    writer = ChunkWriter(engine, engine.create(), batch_size=512)
    with progress_bar() as listen:
        everything = list(some)
        for done, document in enumerate(everything):
            listen("Indexing", done, len(everything))
            for piece in split(document, CHUNKS, model):
                writer.add(piece)
        writer.finish()
    return engine


def answers(folder: str) -> dict[str, tuple[str, list[list[str]]]]:
    """Each question with the spellings of every part of its answer; those with yes or no are left out."""
    found = {}
    for line in (data_folder(folder) / folder / "queries.jsonl").read_text().splitlines():
        row = json.loads(line)
        given = row["metadata"]["answers"]
        parts = [[part] if isinstance(part, str) else part for part in given]
        if folder != "rgb_int_neutronrag":  # there, a list has the parts of an answer
            parts = [[spelling for part in parts for spelling in part]]
        if not {one.lower() for part in parts for one in part} & {"yes", "no"}:
            found[row["_id"]] = (row["text"], parts)
    return found


Fill = Callable[[str, int], str]


def systems(engine: Engine) -> dict[str, Fill]:
    """Each system: from a question and a budget to a context."""

    def rival(method: Any) -> Fill:
        def fill(question: str, budget: int) -> str:
            return filled(engine, engine.search(question, k=60, method=method).chunks, budget)

        return fill

    return {
        OURS: lambda question, budget: engine.context(question, token_budget=budget).text,
        UNEXPANDED: lambda question, budget: engine.context(question, token_budget=budget, expand=False).text,
        **{name: rival(method) for name, method in RIVALS.items()},
    }


def filled(engine: Engine, chunks: Sequence[Chunk], budget: int) -> str:
    """Chunks in their order, each with source and heading, as long as they fit."""
    # Texts are joined by nothing that has tokens; the two that mark the ends of a text count once.
    alone = [render(_passages([chunk], [0.0], "gain"), "markdown") for chunk in chunks]
    parts: list[str] = []
    left = budget - 2
    for text, tokens in zip(alone, count_tokens(engine.model, alone), strict=True):
        if tokens - 2 <= left:
            parts.append(text.replace("[1]", f"[{len(parts) + 1}]", 1))
            left -= tokens - 2
    return "\n\n".join(parts)


def repeated(text: str) -> float:
    """The share of runs of eight words that stood in the context before, from the same document."""
    by_source: dict[str, Counter[tuple[str, ...]]] = {}
    for passage in _PASSAGE.split(text)[1:]:
        head, _, body = passage.partition("\n")
        by_source.setdefault(head.partition(" | ")[0], Counter()).update(runs(body, 8))
    there = sum(found.total() for found in by_source.values())
    return 1.0 - sum(map(len, by_source.values())) / there if there else 0.0


def measured(folder: str, engine: Engine) -> dict[str, Any]:
    """Answer-in-context of each system at each budget, with intervals, and ours against each."""
    asked = answers(folder)
    columns: dict[str, Any] = {}
    repeats: dict[str, Any] = {}
    with progress_bar() as listen:
        for done, (question, parts) in enumerate(asked.values()):
            listen("Asking", done, len(asked))
            for name, fill in systems(engine).items():
                texts = [fill(question, budget) for budget in BUDGETS]
                for text, budget in zip(texts, BUDGETS, strict=True):
                    assert not text or count_tokens(engine.model, [text])[0] <= budget
                columns.setdefault(name, []).append(
                    [all(first_sentence(part, [text]) is not None for part in parts) for text in texts]
                )
                repeats.setdefault(name, []).append([repeated(text) for text in texts])
    rows = {name: np.array(values, dtype=float) for name, values in columns.items()}
    return {
        "questions": len(asked),
        "chunks": engine.collection.count(),
        "systems": {name: _cells(rows, name, np.mean(repeats[name], axis=0)) for name in rows},
    }


def along_shares(engine: Engine) -> dict[str, Fill]:
    """Contexts by β, the share of a chunk's probability that goes to its neighbours."""

    def fill(share: float) -> Fill:
        def filled(question: str, budget: int) -> str:
            with patch.object(core, "spread_to_neighbours", partial(spread_to_neighbours, share=share)):
                return engine.context(question, token_budget=budget).text

        return filled

    return {f"β = {share:.1g}" if share > 1e-6 else "β = 0": fill(share) for share in SHARES}


def sections(
    folder: Path, model: CachedModel, systems: Callable[[Engine], dict[str, Fill]]
) -> dict[str, Any]:
    """The share of a section's runs of five words in the context, and how often it is a tenth or more."""
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    newest = max(row["metadata"]["version"] for row in rows)
    some = [
        Document(
            source=row["_id"],
            text=row["text"],
            kind="text",
            title=row["title"],
            document_hash=digest(row["text"].encode()),
        )
        for row in rows
        if row["metadata"]["version"] == newest
    ]
    engine = indexed(some, model)
    texts = {one.source: set(runs(one.text, 5)) for one in some}
    chunks = Counter(record.metadata["source"] for batch in engine.collection.iterate() for record in batch)
    asked: list[tuple[str, str]] = []
    titles = {row["_id"]: row["text"] for row in map(json.loads, (folder / "queries.jsonl").open())}
    for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query_id, source, _ = line.split("\t")
        if chunks[source] >= 3:
            asked.append((titles[query_id], source))
    asked = asked[::2]  # half of them take long enough
    shares: dict[str, list[list[float]]] = {}
    filling = systems(engine)
    with progress_bar() as listen:
        for done, (question, source) in enumerate(asked):
            listen("Asking", done, len(asked))
            for system, fill in filling.items():
                there = [texts[source] & set(runs(fill(question, budget), 5)) for budget in BUDGETS]
                shares.setdefault(system, []).append([len(one) / len(texts[source]) for one in there])
    columns = {system: np.array(values) for system, values in shares.items()}
    return {
        "questions": len(asked),
        "chunks": sum(chunks.values()),
        "systems": {
            system: {
                str(budget): {
                    "share": float(values[:, at].mean()),
                    "found": float((values[:, at] >= 0.1).mean()),
                }
                for at, budget in enumerate(BUDGETS)
            }
            for system, values in columns.items()
        },
    }


def runs(text: str, size: int) -> list[tuple[str, ...]]:
    """All runs of so many words."""
    words = text.split()
    return [tuple(words[at : at + size]) for at in range(len(words) - size + 1)]


def sections_table(found: Mapping[str, Any]) -> str:
    """Markdown: the share of the section in the context; in brackets how often a tenth or more is there."""
    heads = " | ".join(f"{budget:,}" for budget in BUDGETS)
    lines = [f"| system | {heads} |", "|---" * (len(BUDGETS) + 1) + "|"]
    for system, cells in found["systems"].items():
        shown = [f"{cells[str(b)]['share']:.2f} ({cells[str(b)]['found']:.2f})" for b in BUDGETS]
        lines.append(f"| {system} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _cells(rows: Mapping[str, Any], name: str, repeats: Any) -> dict[str, Any]:
    low, high = bootstrap(rows[name])
    against = compare(rows[OURS], rows[name])
    return {
        str(budget): {
            "mean": float(rows[name][:, at].mean()),
            "low": float(low[at]),
            "high": float(high[at]),
            "ours_more": against[at].difference,
            "ours_more_low": against[at].low,
            "ours_more_high": against[at].high,
            "repeated": float(repeats[at]),
        }
        for at, budget in enumerate(BUDGETS)
    }


def table(found: Mapping[str, Any]) -> str:
    """Markdown: answer-in-context by set and budget, and the repeated text at the largest budget."""
    heads = " | ".join(f"{budget:,}" for budget in BUDGETS)
    lines = [f"| set | system | {heads} | repeated |", "|---|---|" + "---|" * (len(BUDGETS) + 1)]
    for name, cell in found["sets"].items():
        best = {b: max(one[str(b)]["mean"] for one in cell["systems"].values()) for b in BUDGETS}
        for system, values in cell["systems"].items():
            means = {b: values[str(b)]["mean"] for b in BUDGETS}
            shown = [f"**{mean:.3f}**" if mean == best[b] else f"{mean:.3f}" for b, mean in means.items()]
            first = f"{name} ({cell['questions']})" if system == OURS else ""
            repeats = values[str(BUDGETS[-1])]["repeated"]
            lines.append(f"| {first} | {system} | {' | '.join(shown)} | {repeats:.1%} |")
    return "\n".join(lines)


def picture(found: Mapping[str, Any]) -> str:
    """Answer-in-context along the budget, averaged over the clean and over the redundant sets."""
    clean = [name for name in ("HotpotQA", "MuSiQue") if name in found["sets"]]
    panels = {"clean sets": clean, "redundant sets": [one for one in found["sets"] if one not in clean]}
    names = [OURS, UNEXPANDED, *RIVALS]
    tints = dict(zip(names, ("dartboard", "dartboard", "cosine", "mmr", "mmr"), strict=True))
    with Drawing(8.6, 3.6, len(panels)) as (figure, drawn):
        for axes, (title, sets) in zip(drawn, panels.items(), strict=True):
            for name in names:
                cells = [found["sets"][one]["systems"][name] for one in sets]
                axes.plot(
                    BUDGETS,
                    [np.mean([cell[str(budget)]["mean"] for cell in cells]) for budget in BUDGETS],
                    color=COLOURS[tints[name]],
                    linewidth=2.6 if name == OURS else 1.3,
                    linestyle="--" if name in (UNEXPANDED, "MMR, λ = .5") else "-",
                    marker="o",
                    markersize=3,
                    label=name,
                )
            axes.set_xscale("log")
            axes.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
            axes.minorticks_off()
            axes.set_xlabel(f"token budget, {title}")
        drawn[0].set_ylabel("answer in context")
        drawn[-1].legend(
            frameon=False, fontsize=9, labelcolor=INK, loc="center left", bbox_to_anchor=(1.01, 0.5)
        )
        return standalone(as_svg(figure, "Answer in context by token budget"))


if __name__ == "__main__":
    main()
