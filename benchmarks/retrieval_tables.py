# ruff: noqa: E501 - prose
"""benchmarks/results/retrieval.json as docs/benchmarks/retrieval.md, and as tables of other documents."""

from collections.abc import Mapping, Sequence
from typing import Any

Found = Mapping[str, Any]
AIM_MS = 5.0
"""What a search over 100,000 chunks may take, the model left out."""

KEPT = {
    "FAISS flat": "float32",
    "HNSW": "float32 with a graph",
    "IVF, 8 bits": "8 bits (SQ8), in groups",
    "HNSW, 8 bits": "8 bits (SQ8) with a graph",
    "4-bit codes, rescored (ours)": "4-bit codes (ours; the float32 vectors stay on disk)",
}
"""How vectors lie in memory, by index."""


def page(found: Found, compared: str) -> str:
    """The whole page; ``compared`` is indexing beside other encoders."""
    parts = [
        "# Retrieval speed and size",
        "This page shows search speed, recall and memory beside other engines. Unless noted, vectors are synthetic and "
        "clustered by topic, with one BLAS thread. Compare ratios, not absolute times.",
        "## Search beside other engines",
        engines(found["engines"]),
        "## A whole search without the encoder",
        search(found["search"]),
        *cold(found.get("cold")),
        "## A million vectors in one file",
        million(found["million"]),
        "## Which index when",
        indexes(found["indexes"]),
        memory(found["indexes"]),
        "## BM25, dense, ColBERT, hybrid",
        models(found["models"]),
        "## Indexing beside other encoders",
        compared,
        "## Indexing and latency targets",
        indexing(found["indexing"]),
    ]
    return "\n\n".join(parts) + "\n"


def engines(part: Found) -> str:
    """Recall and speed, with how many times slower the others are."""
    ours = part["engines"]["dartboard, one file"]["queries_per_second"]
    rows = []
    for name, row in part["engines"].items():
        if "missing" in row:
            rows.append([name, "not installed", "", "", "", ""])
            continue
        rows.append(
            [
                name,
                f"{row['recall@100']:.3f}",
                f"{row['queries_per_second']:,.0f}",
                f"{ours / row['queries_per_second']:.1f}×",
                f"{row['load_seconds']:.0f}",
                f"{row['build_seconds']:.0f}",
            ]
        )
    heads = ("", "recall@100", "queries/s", "ours is faster by", "load s", "build s")
    about = f"{part['vectors']:,} × {part['dimension']} vectors, k = {part['k']}, one thread."
    return f"{about}\n\n{_table(heads, rows)}"


def search(part: Found) -> str:
    """Milliseconds at the median beside other frameworks."""
    rows = []
    for name, row in part["systems"].items():
        if "missing" in row:
            rows.append([name, "not installed", "", ""])
            continue
        stages = ", ".join(
            f"{stage} {ms:.2f}" for stage, ms in row.get("stages_ms", {}).items() if stage != "total"
        )
        rows.append([name, f"{row['median_ms']:.2f}", f"{row['p95_ms']:.2f}", stages])
    about = (
        f"{part['chunks']:,} chunks: find {part['triage']}, fetch them, select {part['k']}. LangChain's and LlamaIndex's "
        "FAISS stores compare all vectors (their default) and keep documents in memory; ours reads them from the file."
    )
    parts = [
        about,
        _table(("", "median ms", "95 % ms", "stages"), rows),
        _default_beside_dense(part["systems"]),
    ]
    return "\n\n".join(filter(None, parts))


def _default_beside_dense(systems: Found) -> str:
    """The cost of the default beside dense alone, and whether it meets the target."""
    dense, hybrid = (systems.get(f"dartboard, {name}", {}).get("median_ms") for name in ("dense", "hybrid"))
    if dense is None or hybrid is None:
        return ""
    kept = "meets" if hybrid <= AIM_MS else "misses"
    return (
        f"The default, hybrid, takes {hybrid:.2f} ms at the median (dense: {dense:.2f} ms) and {kept} the target of "
        f"{AIM_MS:.0f} ms."
    )


def cold(part: Found | None) -> list[str]:
    """A search from the command line; nothing where it was not measured."""
    if not part:
        return []
    return [
        "## A search from the command line",
        f"`dartboard search` in a new process on {part['chunks']:,} chunks, model loading included: "
        f"{part['wall_seconds']:.2f} s at the median of {part['runs']} runs, {part['wall_seconds_slowest']:.2f} s at most; "
        f"{part['processor_seconds']:.2f} s of CPU time." + _imports(part.get("imports", {})),
    ]


def _imports(part: Found) -> str:
    """Imports in a new process; Python's own start is included."""
    shown = [f"`{line}` {row['wall_seconds']:.2f} s" for line, row in part.items()]
    return f" A new process that only imports: {', '.join(shown)}." if shown else ""


def million(part: Found) -> str:
    """One sentence a number."""
    rows = [
        ["loading and indexing", f"{part['load_seconds']:.0f} s"],
        ["memory at most", f"{part['peak_megabytes'] / 1000:.2f} GB"],
        ["search, k = 100, median / 95 %", f"{part['median_ms']:.1f} / {part['p95_ms']:.1f} ms"],
        ["recall@100", f"{part['recall@100']:.4f}"],
        ["first search after reopening", f"{part['first_search_after_reopening_seconds']:.2f} s"],
        ["on disk", f"{part['megabytes_on_disk'] / 1000:.1f} GB"],
    ]
    if unlike := part.get("recall@100_of_queries_unlike_all"):
        rows.append(["recall@100 of queries unlike any passage", f"{unlike:.3f}"])
    return _table((f"{part['vectors']:,} × 384", ""), rows)


def indexes(part: Sequence[Found]) -> str:
    """Build time, recall, speed and bytes by size and kind."""
    rows = [
        [
            f"{row['vectors']:,}",
            row["index"],
            f"{row['build_seconds']:.1f}",
            f"{row['recall@100']:.3f}",
            f"{row['queries_per_second']:,.0f}",
            f"{row['bytes_per_vector']:,}",
        ]
        for row in part
    ]
    return _table(("vectors", "index", "build s", "recall@100", "queries/s", "bytes per vector"), rows)


def memory(part: Sequence[Found]) -> str:
    """Memory for a million vectors, from the bytes a vector of the largest size measured."""
    largest = max(row["vectors"] for row in part)
    taken = {row["index"]: row["bytes_per_vector"] for row in part if row["vectors"] == largest}
    rows = [[told, f"{taken[name]:,}"] for name, told in KEPT.items() if name in taken]
    return f"Memory for a million 384-dimensional vectors, extrapolated from {largest:,}:\n\n" + _table(
        ("vectors in memory", "MB per million"), rows
    )


def models(part: Found) -> str:
    """Seed of every retrieval comparison: storage, speed, exact words, meaning."""
    rows = [
        [
            name,
            f"{row['bytes_per_document']:,}",
            f"{row['queries_per_second']:,.0f}",
            f"{row['identifiers_recall@10']:.3f}",
            f"{row['paraphrases_recall@10']:.3f}",
        ]
        for name, row in part["retrievers"].items()
    ]
    about = (
        f"{part['passages']:,} abstracts of SciFact. Identifiers are {part['identifiers']} words with digits or inner "
        f"capitals that occur in one abstract; paraphrases are {part['paraphrases']} claims. Bytes without the text. Speed "
        "includes encoding the query, also for BM25, because selection needs its vector."
    )
    heads = ("", "bytes per document", "queries/s", "identifiers, recall@10", "paraphrases, recall@10")
    return about + "\n\n" + _table(heads, rows)


def indexing(part: Found) -> str:
    """Throughput, then the specification's tables with what was measured."""
    rate = part["throughput"]
    table = part["specification"]
    rows = [
        [name, f"{row['median']:.2f}", f"{row['p95']:.2f}"] for name, row in table["milliseconds"].items()
    ]
    memory = [[name, f"{size:,.2f}"] for name, size in table["megabytes"].items()]
    return "\n\n".join(
        [
            f"{rate['files']} files, {rate['chunks']} chunks: {rate['indexing_chunks_per_second']:.0f} chunks/s, "
            f"{rate['share_of_the_limit']:.0%} of the encoder's own speed "
            f"({rate['encoding_alone_chunks_per_second']:.0f}); {rate['seconds_when_nothing_changed']:.2f} s when "
            "nothing has changed.",
            _table(("milliseconds", "median", "95 %"), rows),
            _table(("megabytes", ""), memory),
            f"1,000 queries × 100 random candidates in one call, once, without warm-up: "
            f"{table['1,000 queries × 100 candidates, seconds']:.2f} s (with real candidates: "
            "[Comparison](../comparison.md#speed)).",
        ]
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
