"""Dartboard beside what people use instead, each number with the script that measured it."""

from collections.abc import Mapping
from typing import Any

from benchmarks.quality_tables import Found, shares, worst

_RECALL, _TIME = "`quality.py`", "`selection.py`"

ROWS = (
    ("**dartboard**", "nothing", "dartboard", "dartboard, sigma auto"),
    ("nearest neighbours", "nothing", "cosine", None),
    ("MMR, λ = .5 (LangChain's default)", "λ", "mmr-0.5", "LangChain MMR, arrays"),
    ("MMR, λ = .7 (pyversity's MMR)", "λ", "mmr-0.7", "pyversity MMR"),
    ("DPP (pyversity's default)", "a weight", "pyversity-dpp", "pyversity DPP"),
    ("near-duplicate filter at .90", "a threshold", "dedup-0.90", None),
    ("Dartboard as published, σ = .09", "σ", "dartboard-0.09", "published Dartboard"),
)
"""What it is called, what has to be set, its name in quality.json and in selection.json."""

CONDITIONS = ("clean", "copies at .97", "text edits")
SIZES = ((100, 10), (1000, 10))


def in_numbers(quality: Found, selection: Mapping[str, Any]) -> str:
    """Markdown: recall kept under each condition, the worst case, and the time to choose."""
    times = {(row["n"], row["k"]): row["ms"] for row in selection["single"]}
    heads = ["", "to be set", *(f"recall kept, {one}" for one in CONDITIONS), "worst of all"]
    heads += [f"{k} of {n:,}, ms" for n, k in SIZES]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for title, knob, name, timed in ROWS:
        kept = [f"{_kept(quality, name, condition):.3f}" for condition in CONDITIONS]
        spent = [_three(times[size][timed]) if timed else "" for size in SIZES]
        lines.append("| " + " | ".join([title, knob, *kept, f"{worst(quality, name):.3f}", *spent]) + " |")
    measured = [*[_RECALL] * (len(CONDITIONS) + 1), *[_TIME] * len(SIZES)]
    lines.append("| " + " | ".join(["*measured by*, in `benchmarks/`", "", *measured]) + " |")
    return "\n".join(lines)


def _kept(quality: Found, system: str, condition: str) -> float:
    found = shares(quality, system, condition)
    if found is None:
        raise KeyError(f"quality.json has no {condition!r} of {system!r}")
    return found["mean"]


def _three(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.10g}"
