"""benchmarks/results/decisions.json as the tables of docs/decisions.md."""

from collections.abc import Mapping, Sequence
from typing import Any

from dartboard.evaluation.summary import short

LEVEL = 0.05


def sections(found: Mapping[str, Any]) -> dict[str, str]:
    """The content of each pair of markers whose part was measured."""
    parts = {"criteria": criteria, "vocabulary": vocabulary, "scaling": scaling, "model": model}
    return {name: render(found[name]) for name, render in parts.items() if name in found}


def criteria(rows: Sequence[Mapping[str, Any]]) -> str:
    """Precision / diversity of the picks, and how many there are."""
    titles = {"cosine": "nearest neighbours", "dartboard": "Dartboard", "stopping": "`min_gain_share=0.05`"}
    lines = [["clusters", "relevant clusters", "k", *titles.values()]]
    for row in rows:
        cells = [
            f"{short(row[name]['precision'])} / {short(row[name]['diversity'])}"
            + (f" ({row[name]['length']:.1f} picks)" if name == "stopping" else "")
            for name in titles
        ]
        lines.append([str(row["clusters"]), f"{row['fewest']} or more", str(row["k"]), *cells])
    return table(lines)


def vocabulary(found: Mapping[str, Any]) -> str:
    """Recall with intervals, diversity and milliseconds, for each set and condition."""
    parts = []
    for name, by_condition in found["sets"].items():
        for condition, rows in by_condition.items():
            parts.append(f"**{name}, {condition}**\n\n{compared(rows)}")
    made = f"{found['tokens']:,} tokens each (clusters: of {found['sample']:,} words), made once and cached."
    return "\n\n".join([*parts, made])


def scaling(found: Mapping[str, Any]) -> str:
    """The same for the variants that read texts."""
    parts = []
    for name, measured in found.items():
        for condition, rows in measured["conditions"].items():
            title = f"{name}, {condition}, {measured['queries']} queries, {measured['pool']} candidates each"
            parts.append(f"**{title}**\n\n{compared(rows, times=False)}")
        fitted, taken = measured["temperature"], measured["ms"]
        parts.append(
            f"Fitted temperature {fitted['value']:.3f} ({fitted['low']:.3f} to {fitted['high']:.3f}). "
            f"Scoring takes {taken['query']:.0f} CPU ms for the query, {taken['pairs']:,.0f} for all pairs."
        )
    return "\n\n".join(parts)


def model(found: Mapping[str, Any]) -> str:
    """The two encoders side by side."""
    titles = {
        **{f"ndcg@10 {name}": (f"nDCG@10, {name}", "{:.3f}") for name in found["sets"]},
        "documents_per_second": ("abstracts / CPU s", "{:.0f}"),
        "weights_mb": ("weights, MB", "{:.0f}"),
        "installed_mb": ("installed, MB", "{:,.0f}"),
        "first_vector_seconds": ("first vector, CPU s", "{:.1f}"),
    }
    lines = [["", *(title for title, _ in titles.values())]]
    for name, row in found["rows"].items():
        lines.append([name, *(form.format(row[key]) for key, (_, form) in titles.items())])
    gaps = ", ".join(
        f"{gap['low']:+.3f} to {gap['high']:+.3f} on {name}" for name, gap in found["differences"].items()
    )
    return (
        table(lines)
        + f"\n\nThe difference in nDCG has a 95 % interval of {gaps}. The two vectors of a passage "
        f"have a mean cosine of {found['mean_cosine']:.4f}."
    )


def compared(rows: Mapping[str, Any], *, times: bool = True) -> str:
    """Systems with recall at 5 and 10, marked where they differ from the first, and diversity."""
    lines = [["", "recall@5", "recall@10", "diversity@5", *(["CPU ms per query"] if times else [])]]
    for name, row in rows.items():
        cells = [_recall(row["set_recall@5"]), _recall(row["set_recall@10"])]
        cells.append(short(row["diversity@5"]["mean"]))
        lines.append([name, *cells, *([f"{row['ms']:.1f}"] if times else [])])
    return table(lines)


def table(lines: Sequence[Sequence[str]]) -> str:
    """Markdown."""
    header, *body = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([header, "|" + "---|" * len(lines[0]), *body])


def _recall(score: Mapping[str, float]) -> str:
    star = "*" if score.get("p", 1.0) < LEVEL else ""
    return f"{short(score['mean'])}{star} ({short(score['low'])} – {short(score['high'])})"
