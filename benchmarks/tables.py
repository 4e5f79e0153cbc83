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
    report = json.loads((RESULTS / "selection.json").read_text())
    return with_section((ROOT / "README.md").read_text(), "selection", selection_table(report))


def _three(value: float) -> str:
    """Three significant digits, no exponent."""
    return f"{float(f'{value:.3g}'):,.10g}"


if __name__ == "__main__":
    (ROOT / "README.md").write_text(fresh_readme())
