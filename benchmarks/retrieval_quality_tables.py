"""Turn retrieval_quality.json into the tables of docs/retrievers.md.

python -m benchmarks.retrieval_quality_tables
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "retrievers.md"
RESULTS = ROOT / "benchmarks" / "results" / "retrieval_quality.json"


def fresh_page(text: str) -> str:
    """The page with its tables made anew."""
    found = json.loads(RESULTS.read_text())
    tables = {
        "quality": quality,
        "copies": copies,
        "alpha": alpha,
        "rules": rules,
        "codes": codes,
        "triage": triage,
    }
    for name, make in tables.items():
        before, rest = text.split(f"<!-- {name}:begin -->")
        after = rest.split(f"<!-- {name}:end -->")[1]
        text = f"{before}<!-- {name}:begin -->\n{make(found)}\n<!-- {name}:end -->{after}"
    return text


def quality(found: dict[str, Any]) -> str:
    heads = ("alone", "+ Dartboard, by rank", "by distance", "by score")
    rows = []
    for name, row in found["retrievers"]["rows"].items():
        boards = [_pair(row["dartboard"][how]) for how in ("rank", "distance", "score")]
        rows.append([name, _pair(row["alone"]), *boards])
    apart = found["retrievers"]["differences_95"]
    above = [
        f"{low:+.3f} to {high:+.3f} over {member}"
        for member in ("dense", "bm25")
        for low, high in [apart[f"hybrid .7 - {member}"]["ndcg@10"]]
    ]
    table = _table(("nDCG@10 / recall@10", *heads), rows)
    return f"{table}\n\nHybrid at α = .7 gains {', '.join(above)} in nDCG@10 (95 % bootstrap intervals)."


def copies(found: dict[str, Any]) -> str:
    heads = ("recall@10, any copy", "alone", "+ Dartboard, by rank", "by distance", "by score")
    rows = [
        [name, *(f"{row[how]:.3f}" for how in ("alone", "rank", "distance", "score"))]
        for name, row in found["copies"]["rows"].items()
    ]
    return _table(heads, rows)


def alpha(found: dict[str, Any]) -> str:
    rows = []
    for name, fit in found["retrievers"]["alpha"].items():
        low, high = fit["interval"]
        rows.append(
            [
                name,
                f"{fit['alpha']:.2f} ({low:.2f} to {high:.2f})",
                f"{fit['by_alpha']['1.0']:.4f}",
                f"{fit['by_alpha']['0.0']:.4f}",
                f"{fit['default']:.4f}",
                f"{fit['held_out']:.4f}",
            ]
        )
    heads = ("nDCG@10", "α fitted (95 %)", "first alone", "second alone", "α = .7", "fitted, held out")
    return _table(heads, rows)


def rules(found: dict[str, Any]) -> str:
    rows = []
    for name, by_alpha in found["rules"]["rows"].items():
        best = max(by_alpha, key=lambda alpha: by_alpha[alpha]["ndcg@10"])
        rows.append([name, _pair(by_alpha["0.7"]), f"{_pair(by_alpha[best])} (α = {best})"])
    return _table(("nDCG@10 / recall@10", "α = .7", "best α"), rows)


def codes(found: dict[str, Any]) -> str:
    rows = []
    for name, row in found["codes"]["rows"].items():
        error = row.get("error_per_query_token")
        lost = "" if error is None else f"{error['mean']:+.4f} ± {error['deviation']:.4f}"
        rows.append([name, str(row["bytes_per_token"]), f"{row['bytes_per_passage']:,}", lost, _pair(row)])
    heads = (
        "codes",
        "bytes per token",
        "bytes per passage",
        "error of a token's similarity",
        "nDCG@10 / recall@10",
    )
    return _table(heads, rows)


def triage(found: dict[str, Any]) -> str:
    table = found["triage"]["rows"]
    columns = [name for name in next(iter(table.values())) if name.startswith("of the best")]
    rows = [
        [name, f"{row['bytes_per_passage']:,}", *(f"{row[column]:.3f}" for column in columns)]
        for name, row in table.items()
    ]
    return _table(("triage", "bytes per passage", *columns), rows)


def _pair(row: dict[str, float]) -> str:
    return f"{row['ndcg@10']:.3f} / {row['recall@10']:.3f}"


def _table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


if __name__ == "__main__":
    PAGE.write_text(fresh_page(PAGE.read_text()))
