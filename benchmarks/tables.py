"""Turn the benchmarks' JSON into the tables of the documentation.

python benchmarks/tables.py         # writes them into README.md
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def selection_table(report: dict[str, Any]) -> str:
    """Markdown: milliseconds, and in brackets how many times dartboard's own."""
    rows = report["single"]
    heads = [f"n={row['n']}, k={row['k']}" for row in rows]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(rows) + 1) + "|"]
    for name in rows[0]["ms"]:
        cells = [f"{_three(row['ms'][name])} ms ({_three(row['times_dartboard'][name])}×)" for row in rows]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    many = report["many"]
    share = many["ms"]["select_many"] / many["ms"]["their sgemm"]
    lines += [
        "",
        f"{many['queries']} queries of {many['n']} candidates in one call (k={many['k']}): "
        f"{_three(many['ms']['select_many'])} ms, {share:.1f} times their sgemm alone.",
    ]
    return "\n".join(lines)


def with_section(text: str, name: str, content: str) -> str:
    """``text`` with what stands between the markers of ``name`` replaced."""
    before, rest = text.split(f"<!-- {name}:begin -->")
    after = rest.split(f"<!-- {name}:end -->")[1]
    return f"{before}<!-- {name}:begin -->\n{content}\n<!-- {name}:end -->{after}"


def fresh_readme() -> str:
    """The README with its tables made anew."""
    selection, quality = (
        json.loads((RESULTS / f"{name}.json").read_text()) for name in ("selection", "quality")
    )
    text = with_section((ROOT / "README.md").read_text(), "selection", selection_table(selection))
    return with_section(text, "quality", quality_table(quality))


def quality_page(found: dict[str, Any]) -> str:
    """docs/benchmarks/quality.md: what every system keeps of clean nearest neighbours, set by set."""
    lines = [
        "# Quality on real data",
        "",
        "Made by `make bench-quality`; the model is the default one. Each cell is the recall of the required",
        "passages at 5 / at 10 picks from the nearest 100, any copy of a passage counting. An asterisk is a",
        "significant difference from Dartboard (permutation test over queries, Holm over systems, 5 %).",
        "*Share* is recall as a share of what nearest neighbours reach on the clean set: its mean and",
        "its worst value over all columns.",
    ]
    for name, by_condition in found.items():
        first = next(iter(by_condition.values()))
        lines += ["", f"## {name}: {first['queries']} queries, {first['chunks']:,} passages", ""]
        lines += ["| | " + " | ".join(by_condition) + " |", "|---" * (len(by_condition) + 1) + "|"]
        for system in first["systems"]:
            cells = [
                " / ".join(_recall(score) for score in result["systems"][system].values())
                for result in by_condition.values()
            ]
            lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", "## All together", "", quality_table(found)]) + "\n"


def quality_table(found: dict[str, Any]) -> str:
    """Markdown: what every system keeps of clean nearest neighbours, over all sets, conditions and depths."""
    shares: dict[str, list[float]] = {}
    for by_condition in found.values():
        clean = by_condition["clean"]["systems"]["cosine"]
        for result in by_condition.values():
            for system, by_depth in result["systems"].items():
                shares.setdefault(system, []).extend(
                    score["mean"] / clean[depth]["mean"] for depth, score in by_depth.items()
                )
    lines = ["| | share, mean | share, worst |", "|---|---|---|"]
    for system, values in shares.items():
        lines.append(f"| {system} | {sum(values) / len(values):.3f} | {min(values):.3f} |")
    return "\n".join(lines)


def _recall(score: dict[str, float]) -> str:
    return f"{score['mean']:.3f}" + ("*" if score.get("p_against_dartboard", 1.0) < 0.05 else "")


def _three(value: float) -> str:
    """Three significant digits, no exponent."""
    return f"{float(f'{value:.3g}'):,.10g}"


if __name__ == "__main__":
    (ROOT / "README.md").write_text(fresh_readme())
    page = ROOT / "docs" / "benchmarks" / "quality.md"
    page.write_text(quality_page(json.loads((RESULTS / "quality.json").read_text())))
