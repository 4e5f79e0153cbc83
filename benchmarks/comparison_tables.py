# ruff: noqa: E501 - prose
"""Dartboard beside what people use instead, each number with the script that measured it."""

from collections.abc import Mapping
from typing import Any

from benchmarks.quality_tables import Found, shares, worst

Row = tuple[str, str, str | None, str | None]

ROWS: tuple[Row, ...] = (
    ("dartboard", "nothing", "dartboard", "dartboard, sigma auto"),
    ("nearest neighbours", "nothing", "cosine", None),
    ("MMR, λ = .5 (LangChain's) ¹", "λ", "mmr-0.5", "LangChain MMR, arrays"),
    ("MMR, λ = .7 ²", "λ", "mmr-0.7", None),
    ("pyversity's MMR ³", "a weight", None, "pyversity MMR"),
    ("pyversity's DPP ⁴", "a weight", "pyversity-dpp", "pyversity DPP"),
    ("duplicate filter, .90", "a threshold", "dedup-0.90", None),
    ("published, σ = .09 ⁵", "σ", "dartboard-0.09", "published Dartboard"),
)
"""What it is called, what has to be set, its name in quality.json and in selection.json."""

CONDITIONS = {"clean": "clean", "copies at .97": "copies .97", "text edits": "edits"}
"""Which conditions are shown, and the heads of their columns."""

SIZES = ((100, 10), (1000, 10))

SOURCES = (
    "Recall as a share of clean nearest neighbours, from `benchmarks/quality.py`: clean, copies at cosine .97, edited "
    "copies, and the lowest of all data sets, conditions and depths. Milliseconds to select 10 of 100 and of 1,000 candidates, from "
    "`benchmarks/selection.py`. Empty cells were not measured."
)

NOTES = (
    "- ¹ Recall by our MMR, which picks what LangChain's function picks (a test compares them). Time of LangChain's "
    "function on arrays.",
    "- ² Our MMR, not timed.",
    "- ³ At its default `diversity` of .5. It clips negative cosines to 0, so its picks can differ from the MMR above.",
    "- ⁴ At its default `diversity` of .5.",
    "- ⁵ Recall by our Dartboard at σ = .09, with the published picks where those are exact. Time of the published "
    "algorithm.",
)
"""What each cell is."""

_SIGNS = "¹²³⁴⁵"


def in_numbers(quality: Found, selection: Mapping[str, Any]) -> str:
    """Markdown: recall kept under each condition, the worst case, the time to choose; and what each cell is."""
    return "\n\n".join([_table(quality, selection), SOURCES, "\n".join(NOTES)])


GLANCE = ("nothing", "λ", "a weight", "a threshold")
"""The README leaves out what people cannot install: the published algorithm."""


def at_a_glance(quality: Found, selection: Mapping[str, Any]) -> str:
    """A shorter table without notes, for the README."""
    rows = tuple(row for row in ROWS if row[1] in GLANCE and row[2] is not None)
    return "".join(sign for sign in _table(quality, selection, rows) if sign not in _SIGNS).replace(
        "  |", " |"
    )


def headlines(selection: Mapping[str, Any], retrieval: Mapping[str, Any], load: Mapping[str, Any]) -> str:
    """Markdown: speed of selection, search and service, a line each."""
    single = {(row["n"], row["k"]): row["times_dartboard"] for row in selection["single"]}
    sizes = ((100, 10), (1000, 10), (1000, 50))
    published = [f"{single[size]['published Dartboard']:.0f}" for size in sizes]
    threads = selection["machine"]["blas_threads"]
    systems, engines = retrieval["search"]["systems"], retrieval["engines"]["engines"]
    ms = {name: f"{row['median_ms']:.1f}" for name, row in systems.items()}
    ours, chroma = engines["dartboard, one file"], engines["Chroma, embedded, ef 4000"]
    faster = ours["queries_per_second"] / chroma["queries_per_second"]
    served, plain = load["dartboard"], load["plain"]
    return "\n".join(
        (
            f"- **Selection** is {published[0]}, {published[1]} and {published[2]} times as fast as the published algorithm (10 of 100, 10 and 50 of "
            f"1,000 candidates, σ = .09, {threads} BLAS thread{'s' * (threads > 1)}), with the same picks where that one is exact (`selection.py`).",
            f"- **A whole search** over {retrieval['search']['chunks']:,} chunks takes {ms['dartboard, dense']} ms (dense) or "
            f"{ms['dartboard, hybrid']} ms (hybrid, the default). LangChain with FAISS and MMR takes {ms['LangChain, FAISS and MMR']} ms, "
            f"LlamaIndex {ms['LlamaIndex, FAISS and MMR']} ms; both compare all vectors, ours uses an index (`retrieval.py`).",
            f"- **Vector search** at recall {_short(ours['recall@100'])} answers {faster:.0f} times as many queries per second as Chroma at "
            f"{_short(chroma['recall@100'])} (`retrieval.py`).",
            f"- **The service** answers {served['capacity']['served_a_second']:.0f} questions a second on {load['setting']['cores']} cores by vectors, {load['hybrid']['capacity']['served_a_second']:.0f} by default, encoder included. "
            f"FastAPI with sentence-transformers and LangChain's MMR answers {plain['capacity']['served_a_second']:.0f} (`load.py`).",
        )
    )


def _table(quality: Found, selection: Mapping[str, Any], rows: tuple[Row, ...] = ROWS) -> str:
    times = {(row["n"], row["k"]): row["ms"] for row in selection["single"]}
    heads = ["", "you set", *CONDITIONS.values(), "lowest", *(f"ms, {n:,}" for n, _ in SIZES)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for title, knob, name, timed in rows:
        kept = ["" if name is None else f"{_kept(quality, name, one):.3f}" for one in CONDITIONS]
        kept.append("" if name is None else f"{worst(quality, name):.3f}")
        spent = [_three(times[size][timed]) if timed else "" for size in SIZES]
        lines.append("| " + " | ".join([title, knob, *kept, *spent]) + " |")
    return "\n".join(lines)


def _kept(quality: Found, system: str, condition: str) -> float:
    found = shares(quality, system, condition)
    if found is None:
        raise KeyError(f"quality.json has no {condition!r} of {system!r}")
    return found["mean"]


def _short(recall: float) -> str:
    return f"{recall:.3f}".removeprefix("0")


def _three(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.10g}"
