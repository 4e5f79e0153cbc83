# ruff: noqa: E501 - prose
"""Dartboard beside what people use instead, each number with the script that measured it."""

from collections.abc import Mapping
from typing import Any

from benchmarks.quality_tables import Found, shares, worst

Row = tuple[str, str, str | None, str | None]

ROWS: tuple[Row, ...] = (
    ("**dartboard**", "nothing", "dartboard", "dartboard, sigma auto"),
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

NOTES = (
    "Recall is from `benchmarks/quality.py`: clean, with copies at cosine .97, with edited copies, and the worst "
    "cell of all. Milliseconds are from `benchmarks/selection.py`: 10 of 100 and 10 of 1,000 candidates. What "
    "was not measured is left empty.",
    "",
    "- ¹ Recall by our own MMR, which picks what LangChain's function picks (a test compares them); the time is "
    "that of LangChain's function, given arrays, at its default λ = .5.",
    "- ² Our own MMR, not timed.",
    "- ³ Timed at its default `diversity` of .5. It takes negative cosines to picks for 0, so its picks are not "
    "always those of the MMR above; its recall was not measured.",
    "- ⁴ pyversity's own DPP at its default `diversity` of .5: recall and time.",
    "- ⁵ Recall by our own Dartboard at σ = .09, whose picks are those of the published algorithm where that is "
    "exact; the time is that of the published algorithm at σ = .09.",
)
"""What each cell is."""


def in_numbers(quality: Found, selection: Mapping[str, Any]) -> str:
    """Markdown: recall kept under each condition, the worst case, and the time to choose."""
    times = {(row["n"], row["k"]): row["ms"] for row in selection["single"]}
    heads = ["", "to be set", *CONDITIONS.values(), "worst", *(f"ms, {n:,}" for n, _ in SIZES)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for title, knob, name, timed in ROWS:
        kept = ["" if name is None else f"{_kept(quality, name, one):.3f}" for one in CONDITIONS]
        kept.append("" if name is None else f"{worst(quality, name):.3f}")
        spent = [_three(times[size][timed]) if timed else "" for size in SIZES]
        lines.append("| " + " | ".join([title, knob, *kept, *spent]) + " |")
    return "\n".join(lines) + "\n\n" + "\n".join(NOTES)


def _kept(quality: Found, system: str, condition: str) -> float:
    found = shares(quality, system, condition)
    if found is None:
        raise KeyError(f"quality.json has no {condition!r} of {system!r}")
    return found["mean"]


def _three(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.10g}"
